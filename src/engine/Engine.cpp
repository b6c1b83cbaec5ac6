// SPDX-License-Identifier: Apache-2.0
#include "engine/Engine.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/Error.hpp"

namespace taper {
namespace {

Completion completion_of(const Sequence& s, FinishReason reason) {
  const auto parting = s.tokens.begin() + s.prompt_length;
  return {s.id,
          {s.tokens.begin(), parting},
          {parting, s.tokens.end()},
          s.log_probs,
          s.kept_mass,
          reason,
          s.spans};
}

}  // namespace

Engine::Engine(const Exec& exec, const EngineSetup& setup, const EngineMemory& memory, Arena& arena,
               MemoryPhase phase, ConstFloatMatrix rope_table)
    : runner_(exec, setup, memory, arena, phase, rope_table),
      scheduler_(options().scheduler, options().kv_blocks),
      step_rows_(memory.step_rows) {}

GuessModel& Engine::set_exits(const std::vector<ExitHead>& heads, float* memory) {
  exits_ = std::make_unique<EarlyExits>(runner_, heads, step_rows_, options().logit_rows, memory);
  return *exits_;
}

void Engine::rebind(const EngineSetup& setup, int replica, std::list<Sequence> running,
                    std::deque<Sequence> waiting) {
  preemptions_ = preemptions();
  replica_ = replica;
  runner_.rebind(setup);
  scheduler_ = Scheduler(options().scheduler, options().kv_blocks);
  scheduler_.adopt(std::move(running), std::move(waiting));
}

void Engine::begin(const SamplingOptions& sampling, const StopOptions& stops) {
  TAPER_EXPECT(idle());
  require_no_problems(sampling.problems(), "sampling");
  finished_ = 0;
  sampling_ = sampling;
  stops_ = StopMatcher(stops);
}

void Engine::submit(const Request& request) {
  const int length = static_cast<int>(request.prompt.size());
  TAPER_VALIDATE(length > 0, "prompt " << request.first.prompt
                                       << " is empty (a prompt needs at least one token)");
  TAPER_VALIDATE(request.max_new_tokens > 0 && request.samples > 0,
                 "prompt " << request.first.prompt << " asks for " << request.samples
                           << " samples of " << request.max_new_tokens
                           << " tokens (both must be at least 1)");
  TAPER_VALIDATE(length < options().max_positions,
                 "prompt " << request.first.prompt << " has " << length
                           << " tokens (the context holds " << options().max_positions
                           << ", at least one must be left for the response)");
  for (const std::int32_t id : request.prompt)
    TAPER_VALIDATE(id >= 0 && id < options().valid_ids,
                   "prompt " << request.first.prompt << " has token id " << id
                             << " (ids of this tokenizer are below " << options().valid_ids << ")");
  for (int first = 0; first < request.samples; first += options().scheduler.max_running) {
    Request part =
        request.part(first, std::min(request.samples - first, options().scheduler.max_running));
    Sequence sequence;
    sequence.id = part.first;
    sequence.samples = part.samples;
    sequence.prompt_length = length;
    sequence.max_new_tokens = std::min(part.max_new_tokens, options().max_positions - length);
    sequence.pinned = std::move(part.pinned);
    sequence.tokens = std::move(part.prompt);
    scheduler_.submit(std::move(sequence));
  }
}

// In a step that only decodes, the drafter guesses how sequences go on; the guesses are the last
// tokens of the sequences until deliver().
void Engine::add_drafts(std::vector<Work>& work) {
  const auto decodes = [](const Work& w) { return w.decodes(); };
  if (work.empty() || !std::all_of(work.begin(), work.end(), decodes)) return;
  std::vector<DraftAsk> asks;
  for (const Work& w : work) {
    const Sequence& s = *w.sequence;
    // The last token that the limit allows need not be guessed: it comes with those before it.
    asks.push_back({&s, s.limit() - (s.length() - s.prompt_length) - 1});
  }
  int rows = options().scheduler.max_step_rows - static_cast<int>(work.size());
  const auto drafts = drafter_->propose(
      asks, {rows, scheduler_.waiting().empty() ? Queue::kEmpty : Queue::kWaiting});
  TAPER_EXPECT(drafts.size() == work.size());
  for (std::size_t i = 0; i < work.size(); ++i) {
    Work& w = work[i];
    const int length = static_cast<int>(drafts[i].size());
    TAPER_EXPECT(length <= asks[i].most && length <= rows);
    w.drafted = scheduler_.extend(*w.sequence, length);
    w.count += w.drafted;
    rows -= w.drafted;
    for (int k = 0; k < w.drafted; ++k) {
      TAPER_ENSURE(drafts[i][k] >= 0 && drafts[i][k] < options().valid_ids);
      w.sequence->tokens.push_back(drafts[i][k]);
    }
  }
}

StepReport Engine::step(ControlWord word) {
  StepReport report;
  StepExchange exchange(parallel().group(), word);
  std::vector<Work> work = scheduler_.next_step();
  if (drafter_ != nullptr) add_drafts(work);
  for (const Work& w : work) {
    (w.decodes() ? report.decode_rows : report.prefill_rows) += w.count - w.drafted;
    report.drafted_rows += w.drafted;
  }
  if (!work.empty()) {
    std::vector<Chunk> chunks;
    for (const auto& [sequence, count, drafted] : work)
      chunks.push_back({sequence->blocks.data(), sequence->computed,
                        std::span(sequence->tokens).subspan(sequence->computed, count)});
    const FloatMatrix hidden = exits_ ? exits_->forward(work, chunks) : runner_.forward(chunks);
    const std::vector<DrawRow> rows = draw_rows(work);
    const std::vector<DrawnToken> tokens = runner_.draw(rows, hidden, sampling_, exchange);
    report.accepted = deliver(work, tokens);
    // Draws wait for their results; without any the kernels may still read what the next step
    // writes: ids, positions and block tables.
    if (rows.empty()) exec().fence();
  }
  report.control = exchange.leader_word();
  for (const Sequence& s : scheduler_.running()) {
    report.running += s.samples;
    report.context += s.computed;
  }
  for (const Sequence& s : scheduler_.waiting()) report.waiting += s.samples;
  return report;
}

// Of the sequences that `work` brings to their last token, parts of prompts are not among them. The
// row after the last token gives one token for each sample; those of drafted tokens one each.
std::vector<DrawRow> Engine::draw_rows(const std::vector<Work>& work) {
  std::vector<DrawRow> rows;
  int end = 0;
  for (const Work& w : work) {
    end += w.count;
    if (!w.finishes()) continue;
    const Sequence& s = *w.sequence;
    for (int i = w.drafted; i >= 0; --i)
      rows.push_back(
          {end - 1 - i, s.id, s.samples, std::span(s.tokens).first(s.tokens.size() - i)});
  }
  return rows;
}

// Gives the sequences the tokens of their rows; how many there are beyond one for each.
int Engine::deliver(const std::vector<Work>& work, std::span<const DrawnToken> tokens) {
  int accepted = 0;
  for (const Work& w : work) {
    Sequence& s = *w.sequence;
    const bool finishes = w.finishes();
    s.computed += w.count;
    if (!finishes) continue;
    const auto mine = tokens.first(s.samples + w.drafted);
    tokens = tokens.subspan(mine.size());
    if (s.is_shared_prompt())
      fork_samples(s, mine);
    else
      accepted += append(s, mine);
  }
  return accepted;
}

std::optional<FinishReason> Engine::end_of(const Sequence& s) const {
  const std::span<const std::int32_t> response(s.tokens.data() + s.prompt_length,
                                               s.tokens.size() - s.prompt_length);
  const int length = static_cast<int>(response.size());
  if (const auto reason = stops_.check(response)) return reason;
  if (length < s.limit()) return std::nullopt;
  return length < s.max_new_tokens ? FinishReason::kStop : FinishReason::kLength;
}

void Engine::add_token(Sequence& s, const DrawnToken& token) const {
  const ProducedBy here{s.length() - s.prompt_length, parallel().group().size(), replica_};
  if (s.spans.empty() || s.spans.back().tp != here.tp || s.spans.back().replica != here.replica)
    s.spans.push_back(here);
  s.tokens.push_back(token.id);
  s.log_probs.push_back(token.log_prob);
  s.kept_mass.push_back(token.kept_mass);
}

// Tokens that were drawn after the sequence and after each of its guesses: they count up to the
// first one that is not what was guessed. Returns how many there are beyond one. What is left of
// the sequence in the cache is as if each token had had a step of its own.
int Engine::append(Sequence& s, std::span<const DrawnToken> tokens) {
  const int drafted = static_cast<int>(tokens.size()) - 1;
  const std::vector<std::int32_t> guesses(s.tokens.end() - drafted, s.tokens.end());
  s.tokens.resize(s.tokens.size() - guesses.size());
  std::optional<FinishReason> end;
  int more = 0;
  for (;; ++more) {
    add_token(s, tokens[more]);
    end = end_of(s);
    if (end || more == drafted || tokens[more].id != guesses[more]) break;
  }
  if (drafter_ != nullptr) drafter_->observe(s, drafted, std::span(s.tokens).last(more + 1));
  if (end) {
    complete(s, *end);
    scheduler_.finish(&s);
  } else if (drafted > 0) {
    scheduler_.truncate(s, s.length() - 1);
  }
  return more;
}

// Called when a shared prompt has been read: its samples become sequences of their own that share
// the prompt's full blocks.
void Engine::fork_samples(Sequence& prompt, std::span<const DrawnToken> first_tokens) {
  for (std::size_t k = 0; k < first_tokens.size(); ++k) {
    Sequence child = prompt.fork(static_cast<int>(k));
    add_token(child, first_tokens[k]);
    if (const auto reason = end_of(child)) {  // over at its first token: never scheduled
      complete(child, *reason);
      continue;
    }
    const std::int32_t from = prompt.blocks.empty() ? -1 : prompt.blocks.back();
    const std::int32_t to = scheduler_.fork(prompt, std::move(child));
    if (to >= 0) pool().copy(exec(), to, from);
  }
  scheduler_.finish(&prompt);
}

// Prompts that are still being read for several samples have no response yet.
void Engine::abort(const std::function<bool(const ResponseId&, int length)>& is_unwanted) {
  const auto unwanted = [&](const Sequence& s) {
    const int length = s.length() - s.prompt_length;
    return length > 0 && is_unwanted(s.id, length);
  };
  for (const Sequence& s : scheduler_.remove_if(unwanted)) complete(s, FinishReason::kAbort);
}

void Engine::complete(const Sequence& s, FinishReason reason) {
  if (reason != FinishReason::kAbort) ++finished_;
  completions_.push_back(completion_of(s, reason));
}

std::vector<Completion> Engine::take_completions() {
  return std::exchange(completions_, {});
}

std::vector<Completion> Engine::unfinished() const {
  std::vector<Completion> responses;
  const auto add = [&](const Sequence& s) {
    if (s.length() > s.prompt_length) responses.push_back(completion_of(s, FinishReason::kAbort));
  };
  for (const Sequence& s : scheduler_.running()) add(s);
  for (const Sequence& s : scheduler_.waiting()) add(s);
  return responses;
}

ReplicaSnapshot Engine::snapshot() const {
  ReplicaSnapshot snapshot;
  std::set<std::int64_t> prompts;
  std::int64_t context = 0, response = 0, waiting = 0;
  int longest = 0;
  for (const Sequence& s : scheduler_.running()) {
    const int generated = s.length() - s.prompt_length;
    prompts.insert(s.id.prompt);
    context += s.computed;
    response += std::int64_t{generated} * s.samples;
    longest = std::max(longest, s.length());
    auto& bucket = snapshot.lengths[length_bucket(generated)];
    bucket = clamped<std::uint16_t>(std::int64_t{bucket} + s.samples);
  }
  for (const Sequence& s : scheduler_.waiting()) waiting += s.samples;
  snapshot.context = clamped<std::uint32_t>(context);
  snapshot.response = clamped<std::uint32_t>(response);
  snapshot.longest = clamped<std::uint32_t>(longest);
  snapshot.prompts = clamped<std::uint32_t>(std::ssize(prompts));
  snapshot.finished = clamped<std::uint32_t>(finished_);
  snapshot.waiting = clamped<std::uint16_t>(waiting);
  return snapshot;
}

}  // namespace taper
