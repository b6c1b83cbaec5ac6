// SPDX-License-Identifier: Apache-2.0
#include "engine/Engine.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "base/Error.hpp"

namespace taper {
namespace {

constexpr const char* kPassItem = "activations (inference)";
constexpr const char* kHeadItem = "logits (rollout)";

BlockShape block_shape(const ParamTable& table, const ModelShard& shard,
                       const EngineOptions& options) {
  return {table.config().layers, shard.kv_heads().size(), table.config().head_dim, options.kv_type};
}

}  // namespace

EngineMemory EngineMemory::of(const ParamTable& table, const ModelParallel& parallel,
                              const EngineOptions& options) {
  EngineMemory memory;
  memory.layers = table.config().layers;
  memory.step_rows = options.scheduler.max_step_rows;
  memory.kv_layer =
      options.kv_blocks * block_shape(table, parallel.shard(), options).layer_floats();
  memory.activations = InferencePass::floats(table, parallel, options.scheduler.max_step_rows);
  memory.head = TokenHead::floats(table, parallel.shard(), options.logit_rows);
  return memory;
}

void EngineMemory::cover(const EngineMemory& other) {
  layers = std::max(layers, other.layers);
  step_rows = std::max(step_rows, other.step_rows);
  kv_layer = std::max(kv_layer, other.kv_layer);
  activations = std::max(activations, other.activations);
  head = std::max(head, other.head);
}

void EngineMemory::add_memory(MemoryPlan& plan, MemoryPhase phase) const {
  constexpr std::int64_t kBytes = sizeof(float);
  BlockPool::add_memory(plan, phase, layers, kv_layer);
  plan.add(kPassItem, phase, activations * kBytes);
  plan.add(kHeadItem, phase, head * kBytes);
}

Engine::Engine(const Exec& exec, const EngineLayout& layout, const EngineMemory& memory,
               Arena& arena, MemoryPhase phase, ConstFloatMatrix rope_table)
    : exec_(exec),
      view_(layout.view),
      parallel_(layout.parallel),
      options_(layout.options),
      rope_table_(rope_table),
      kv_memory_(BlockPool::take(arena, phase, memory.layers, memory.kv_layer)),
      pass_memory_(arena.take<float>(kPassItem, phase, memory.activations)),
      head_memory_(arena.take<float>(kHeadItem, phase, memory.head)),
      pool_(pool_for(layout)),
      pass_(view_->table(), *parallel_, options_.scheduler.max_step_rows, pass_memory_, rope_table),
      head_(view_->table(), parallel_->shard(), options_.logit_rows, head_memory_),
      scheduler_(options_.scheduler, options_.kv_blocks) {
  const auto rows = static_cast<std::size_t>(memory.step_rows);
  ids_.reserve(rows);
  positions_.reserve(rows);
  segments_.reserve(rows);
}

BlockPool Engine::pool_for(const EngineLayout& layout) const {
  return {block_shape(layout.view->table(), layout.parallel->shard(), layout.options),
          layout.options.kv_blocks, kv_memory_};
}

void Engine::rebind(const EngineLayout& layout, int replica, std::list<Sequence> running,
                    std::deque<Sequence> waiting) {
  view_ = layout.view;
  parallel_ = layout.parallel;
  options_ = layout.options;
  replica_ = replica;
  pool_ = pool_for(layout);
  pass_ = InferencePass(view_->table(), *parallel_, options_.scheduler.max_step_rows, pass_memory_,
                        rope_table_);
  head_ = TokenHead(view_->table(), parallel_->shard(), options_.logit_rows, head_memory_);
  preemptions_ += scheduler_.preemptions();
  scheduler_ = Scheduler(options_.scheduler, options_.kv_blocks);
  scheduler_.adopt(std::move(running), std::move(waiting));
}

void Engine::begin(const SamplingOptions& sampling, const StopOptions& stops) {
  TAPER_EXPECT(idle());
  require_no_problems(sampling.problems(), "sampling");
  finished_ = 0;
  sampling_ = sampling;
  penalty_ = RepetitionPenalty(sampling.repetition_penalty);
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
  TAPER_VALIDATE(length < options_.max_positions,
                 "prompt " << request.first.prompt << " has " << length
                           << " tokens (the context holds " << options_.max_positions
                           << ", at least one must be left for the response)");
  for (const std::int32_t id : request.prompt)
    TAPER_VALIDATE(id >= 0 && id < options_.valid_ids,
                   "prompt " << request.first.prompt << " has token id " << id
                             << " (ids of this tokenizer are below " << options_.valid_ids << ")");
  for (int first = 0; first < request.samples; first += options_.scheduler.max_running) {
    Request part =
        request.part(first, std::min(request.samples - first, options_.scheduler.max_running));
    Sequence sequence;
    sequence.id = part.first;
    sequence.samples = part.samples;
    sequence.prompt_length = length;
    sequence.max_new_tokens = std::min(part.max_new_tokens, options_.max_positions - length);
    sequence.pinned = std::move(part.pinned);
    sequence.tokens = std::move(part.prompt);
    scheduler_.submit(std::move(sequence));
  }
}

// In a step that only decodes, the drafter guesses how sequences go on; the guesses are the last
// tokens of the sequences until deliver().
void Engine::add_drafts(std::vector<Work>& work) {
  const auto decodes = [](const Work& w) { return w.decodes() && w.finishes(); };
  if (!std::all_of(work.begin(), work.end(), decodes)) return;
  std::vector<DraftAsk> asks;
  for (const Work& w : work) {
    const Sequence& s = *w.sequence;
    // The last token that the limit allows need not be guessed: it comes with those before it.
    asks.push_back({&s, s.limit() - (s.length() - s.prompt_length) - 1});
  }
  int rows = options_.scheduler.max_step_rows - static_cast<int>(work.size());
  const auto drafts = drafter_->propose(asks, rows);
  TAPER_EXPECT(drafts.size() == work.size());
  for (std::size_t i = 0; i < work.size(); ++i) {
    Work& w = work[i];
    const int length = static_cast<int>(drafts[i].size());
    TAPER_EXPECT(length <= asks[i].most && length <= rows);
    w.drafted = scheduler_.extend(*w.sequence, w.sequence->length(), length);
    w.count += w.drafted;
    rows -= w.drafted;
    for (int k = 0; k < w.drafted; ++k) {
      TAPER_ENSURE(drafts[i][k] >= 0 && drafts[i][k] < options_.valid_ids);
      w.sequence->tokens.push_back(drafts[i][k]);
    }
  }
}

// How many rows a step gets whose launches are recorded; 0 if they are not.
int Engine::recorded_rows(const std::vector<Work>& work) const {
  const int rows =
      StepGraphs::padded_rows(static_cast<int>(work.size()), options_.scheduler.max_step_rows);
  const Group& group = parallel_->group();
  if (rows == 0 || !options_.graphs || !(group.is_null() || group.connects_devices())) return 0;
  const bool decodes =
      std::all_of(work.begin(), work.end(), [](const Work& w) { return w.count == 1; });
  return decodes ? rows : 0;
}

// At least `rows` rows, the last ones without a sequence.
TokenBatch Engine::assemble(const std::vector<Work>& work, int rows) {
  ids_.clear();
  positions_.clear();
  segments_.clear();
  for (const Work& w : work) {
    const Sequence& s = *w.sequence;
    segments_.push_back({s.blocks.data(), s.computed, w.count, static_cast<int>(ids_.size())});
    for (int i = 0; i < w.count; ++i) {
      ids_.push_back(s.tokens[s.computed + i]);
      positions_.push_back(s.computed + i);
    }
  }
  for (int row = static_cast<int>(ids_.size()); row < rows; ++row) {
    segments_.push_back({nullptr, 0, 0, row});
    ids_.push_back(0);
    positions_.push_back(0);
  }
  return {staging_view(ids_), staging_view(positions_), staging_view(segments_)};
}

StepReport Engine::step(ControlWord word) {
  StepReport report;
  StepExchange exchange(parallel_->group(), word);
  std::vector<Work> work = scheduler_.next_step();
  if (drafter_ != nullptr) add_drafts(work);
  for (const Work& w : work) {
    (w.decodes() ? report.decode_rows : report.prefill_rows) += w.count - w.drafted;
    report.drafted_rows += w.drafted;
  }
  if (!work.empty()) {
    const int recorded = recorded_rows(work);
    const TokenBatch batch = assemble(work, recorded);
    const FloatMatrix hidden =
        recorded > 0 ? pass_.forward(exec_, *view_, *parallel_, batch, pool_.pages(), graphs_)
                     : pass_.forward(exec_, *view_, *parallel_, batch, pool_.pages());
    const std::vector<DrawRow> rows = draw_rows(work);
    const std::vector<DrawnToken> tokens = sample(rows, hidden, exchange);
    report.accepted = deliver(work, tokens);
    // Draws wait for their results; without any the kernels may still read what the next step
    // writes: ids, positions and block tables.
    if (rows.empty()) exec_.fence();
  }
  report.control = exchange.leader_word();
  for (const Sequence& s : scheduler_.running()) {
    report.running += s.samples;
    report.context += s.computed;
  }
  for (const Sequence& s : scheduler_.waiting()) report.waiting += s.samples;
  return report;
}

// Of the sequences that `work` brings to their last token. Parts of prompts are not among them.
std::vector<Engine::DrawRow> Engine::draw_rows(const std::vector<Work>& work) {
  std::vector<DrawRow> rows;
  int end = 0;
  for (const Work& w : work) {
    end += w.count;
    if (!w.finishes()) continue;
    for (int i = w.drafted; i >= 0; --i)
      rows.push_back({w.sequence, end - 1 - i, w.sequence->length() - i});
  }
  return rows;
}

// The tokens of the rows, in chunks of as many rows as there is memory for logits. Collective over
// the group.
std::vector<DrawnToken> Engine::sample(std::span<const DrawRow> rows, FloatMatrix hidden,
                                       StepExchange& exchange) {
  const std::size_t chunk = static_cast<std::size_t>(options_.logit_rows);
  std::vector<DrawnToken> tokens;
  for (std::size_t done = 0; done < rows.size(); done += chunk) {
    const auto now = rows.subspan(done, std::min(chunk, rows.size() - done));
    const std::vector<DrawnToken> drawn = draw(now, hidden, exchange);
    tokens.insert(tokens.end(), drawn.begin(), drawn.end());
  }
  return tokens;
}

// The next tokens of the sequences, those of all samples of a prompt side by side. Collective over
// the group.
std::vector<DrawnToken> Engine::draw(std::span<const DrawRow> draw_rows, FloatMatrix hidden,
                                     StepExchange& exchange) {
  std::vector<int> rows;
  std::vector<Draw> draws;
  std::vector<std::span<const std::int32_t>> tokens_of_rows;
  for (const auto& [sequence, row, length] : draw_rows) {
    const Sequence& s = *sequence;
    for (int k = 0; k < s.samples; ++k)
      draws.push_back({static_cast<int>(rows.size()), {s.id.prompt, s.id.sample + k}, length});
    rows.push_back(row);
    tokens_of_rows.emplace_back(s.tokens.data(), length);
  }
  std::function<void(FloatMatrix)> edit;
  if (penalty_.is_on())
    edit = [&](FloatMatrix raw) { penalty_.apply(exec_, *parallel_, raw, tokens_of_rows); };
  const float temperature = sampling_.temperature > 0.0f ? sampling_.temperature : 1.0f;
  const RowLogits logits = head_.logits(exec_, *view_, *parallel_, hidden, rows,
                                        {options_.valid_ids, temperature}, edit);
  return draw_tokens(exec_, *parallel_, logits, options_.valid_ids, draws, sampling_, exchange);
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
  const ProducedBy here{s.length() - s.prompt_length, parallel_->group().size(), replica_};
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
  const std::vector<std::int32_t> guesses(s.tokens.end() - (std::ssize(tokens) - 1),
                                          s.tokens.end());
  s.tokens.resize(s.tokens.size() - guesses.size());
  std::size_t more = 0;
  for (;; ++more) {
    add_token(s, tokens[more]);
    if (const auto reason = end_of(s)) {
      complete(s, *reason);
      scheduler_.finish(&s);
      return static_cast<int>(more);
    }
    if (more == guesses.size() || tokens[more].id != guesses[more]) break;
  }
  if (!guesses.empty()) scheduler_.truncate(s, s.length() - 1);
  return static_cast<int>(more);
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
    if (to >= 0) pool_.copy(exec_, to, from);
  }
  scheduler_.finish(&prompt);
}

void Engine::complete(const Sequence& s, FinishReason reason) {
  ++finished_;
  const auto parting = s.tokens.begin() + s.prompt_length;
  completions_.push_back({s.id,
                          {s.tokens.begin(), parting},
                          {parting, s.tokens.end()},
                          s.log_probs,
                          s.kept_mass,
                          reason,
                          s.spans});
}

std::vector<Completion> Engine::take_completions() {
  return std::exchange(completions_, {});
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
