// SPDX-License-Identifier: Apache-2.0
#include "train/Rollouts.hpp"

#include <algorithm>
#include <utility>

#include "base/Bytes.hpp"
#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Text.hpp"
#include "rollout/GeneratedSample.hpp"

namespace taper {

Rollouts::Rollouts(const RunOptions& options, const ModelFiles& files, const Ranks& ranks,
                   Generator* generator, Judge& judge)
    : options_(options.rollout),
      ranks_(ranks),
      dynamic_(options.dynamic),
      seed_(options.seed),
      generator_(generator),
      judge_(judge),
      prompts_(options.data, files, options.rollout.max_prompt_tokens, options.seed),
      lengths_(options.rollout.lengths, options.seed, options.rollout.max_new_tokens, ranks),
      stops_(lengths_.is_on() ? StopOptions() : options.rollout.stops(files)),
      journal_(RunDirectory(options.output), options.has_journal(), ranks),
      rounds_(options_.rounds, options_.prompts, options_.samples, prompts_.training_file_prompts(),
              [this](std::int64_t number) { return prompts_.item(number); }),
      ahead_(rounds_) {
  if (!options_.rounds.is_priced()) return;
  choice_.emplace(generator_->read_profile(), generator_->possible_layouts(),
                  options_.max_new_tokens);
  choice_state_ = choice_->save();
}

void Rollouts::advance() {
  rounds_ = ahead_;
  if (choice_) choice_state_ = choice_->save();
}

void Rollouts::add_state(StateInfo& state) const {
  state.prompt_batches = (rounds_.begun() + options_.prompts - 1) / options_.prompts;
  if (options_.rounds.is_plain()) return;
  ByteWriter out(state.rounds);
  out.text(rounds_.save());
  if (choice_) out.text(choice_state_);
}

void Rollouts::require_state(const StateInfo& state) const {
  if (state.rounds.empty()) return;
  PromptRounds saved = rounds_;
  saved.load(ByteReader(state.rounds).text());
}

void Rollouts::set_state(const StateInfo& state) {
  rounds_.begin_at(state.prompt_batches.value_or(state.iteration) * options_.prompts);
  if (state.rounds.empty()) return;
  ByteReader in(state.rounds);
  PromptRounds saved = rounds_;
  saved.load(in.text());
  if (choice_ && !in.done()) choice_->load(choice_state_ = in.text());
  if (!options_.rounds.is_plain())
    rounds_ = std::move(saved);
  else if (ranks_.rank() == 0 && !saved.waiting().empty())
    TAPER_WARN(count_text(std::ssize(saved.waiting()), "prompt")
               << " that wait for a long round will not be trained (Rollout/Rounds is plain now)");
}

SamplingOptions Rollouts::sampling(std::int64_t iteration) const {
  SamplingOptions sampling = options_.sampling;
  sampling.seed = seed_;
  sampling.iteration = static_cast<std::uint64_t>(iteration);
  return sampling;
}

std::optional<Batch> Rollouts::collect(std::int64_t iteration, StopAgreement& stop,
                                       PhaseTimer& timer, const Beside& beside) {
  const int wanted = options_.prompts, most = dynamic_.on ? dynamic_.max_rounds : 1;
  SampleSet all;
  if (generator_ != nullptr) preempted_before_ = generator_->preemptions();
  generations_.clear();
  reports_.clear();
  stream_.clear();
  made_.clear();
  ahead_ = rounds_;
  if (choice_) choice_->load(choice_state_);
  if (auto journal = journal_.read(iteration); generator_ != nullptr)
    generator_->recall(std::move(journal));
  judge_.begin_figures();
  int rounds = 0;
  while (rounds < most && (rounds == 0 || count_teaching_groups(all.all()) < wanted)) {
    auto samples = round(iteration, stop, timer, beside);
    if (!samples) return std::nullopt;
    if (generator_ != nullptr) generations_.push_back(generator_->report());
    all.append(std::move(*samples));
    ++rounds;
  }
  GroupCounts counts;
  if (dynamic_.on) {
    const GroupSelection selection = select_groups(all.all(), wanted);
    all = all.extract(selection.taken);
    counts = selection.counts;
  }
  counts.rounds = rounds;
  if (generator_ != nullptr) generator_->recall({});
  return Batch(std::move(all), counts);
}

// As if the next round had just the prompts that it keeps.
void Rollouts::choose_factor() {
  Round round = ahead_.next();
  round.prompts.resize(static_cast<std::size_t>(options_.prompts));
  round.samples = options_.samples;
  const auto requests = this->requests(round, prompts_.training(round.prompts), 0);
  ahead_.set_prompts_factor(
      choice_->choose(generator_->workload(requests, 0), ahead_.prompts_factor()));
}

std::vector<Request> Rollouts::requests(const Round& round, const std::vector<Prompt>& prompts,
                                        std::int64_t first) const {
  std::vector<Request> list;
  for (std::size_t i = 0; i < prompts.size(); ++i)
    list.push_back({{first + static_cast<std::int64_t>(i), 0},
                    round.samples,
                    prompts[i].tokens,
                    options_.max_new_tokens});
  return list;
}

// What has ended here, or, if the generation was stopped, what it had. Collective over the ranks
// that generate.
std::vector<Sample> Rollouts::generate(const Round& round, const std::vector<Request>& requests,
                                       const SamplingOptions& sampling, const StopAgreement& stop,
                                       EarlyWork* early) {
  auto completions = generator_->run(
      requests, sampling, stops_,
      [&](const Group& group) {
        if (early != nullptr) early->follow_commands();
        return stop.is_wanted_in(group);
      },
      [&](const Completion& c) {
        judge_.submit({.id = c.id, .prompt = c.prompt, .response = c.response, .finish = c.finish});
        if (early != nullptr) early->add(c);
      },
      round.is_race ? std::optional(round.goal) : std::nullopt, early);
  if (generator_->stopped()) completions = generator_->take_interrupted();
  return as_samples(std::move(completions));
}

// Generates, and scores where the responses were made. None if a stop was agreed on.
std::optional<SampleSet> Rollouts::round(std::int64_t iteration, StopAgreement& stop,
                                         PhaseTimer& timer, const Beside& beside) {
  timer.start("gen");
  if (choice_ && ahead_.begins_period()) choose_factor();
  const Round round = ahead_.next();
  const std::vector<Prompt> prompts = prompts_.training(round.prompts);
  const std::int64_t first = std::ssize(stream_);
  stream_.insert(stream_.end(), round.prompts.begin(), round.prompts.end());
  SamplingOptions sampling = this->sampling(iteration);
  if (!options_.rounds.is_plain())
    for (const std::int64_t number : stream_) sampling.keys.push_back(ahead_.key(number));
  // Ordinals go on from round to round: no two requests of an iteration have the same id.
  std::vector<Request> requests = this->requests(round, prompts, first);
  lengths_.pin(requests, sampling, options_.samples);
  judge_.begin(prompts, first);
  std::vector<Sample> samples;
  if (beside.early != nullptr) beside.early->begin();
  const auto work = [&] { samples = generate(round, requests, sampling, stop, beside.early); };
  if (generator_ != nullptr && beside.record != nullptr)
    beside.record->note("gen", "policy", beside.generation, work);
  else if (generator_ != nullptr)
    work();
  if (journal_.is_on())
    for (const Sample& s : samples) made_.push_back(record_of(s, false));
  if (beside.early != nullptr) beside.early->end(samples);
  if (stop.reached()) return std::nullopt;
  TAPER_INSIST(
      generator_ == nullptr || !generator_->stopped(),
      "the generation was stopped, but the job was not (it would train truncated responses)");
  std::vector<Outcome> outcomes;
  if (round.is_race) {
    SampleSet all(ranks_.world(), std::move(samples));
    outcomes = outcomes_of(all.all());
    const std::vector<bool> kept = kept_rows(round, all.all());
    reports_.emplace_back(round, all.all(), kept);
    samples = std::move(all.extract(kept).here());
    for (const Sample& unkept : all.here()) judge_.cancel(unkept.id);
  }
  timer.start("reward");
  auto judged = judge_.finish(
      std::move(samples), [&] { return stop.reached(); }, beside.calls, beside.record);
  if (!judged) return std::nullopt;
  if (!round.is_race) {
    outcomes = outcomes_of(judged->all());
    if (!options_.rounds.is_plain())
      reports_.emplace_back(round, judged->all(), kept_rows(round, judged->all()));
  }
  if (generator_ != nullptr) generator_->learn(outcomes);
  std::vector<int> longest(round.prompts.size(), 0), kept;
  for (const SampleSummary& s : judged->all()) {
    kept.push_back(s.response_tokens);
    int& length = longest.at(static_cast<std::size_t>(s.id.prompt - first));
    length = std::max(length, s.response_tokens);
  }
  ahead_.conclude(round, longest);
  if (choice_) choice_->add(kept);
  if (choice_ && ahead_.begins_period()) choice_->end_period(options_.samples);
  if (!options_.rounds.is_plain()) reports_.back().waiting = std::ssize(ahead_.waiting());
  return judged;
}

}  // namespace taper
