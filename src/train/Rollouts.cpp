// SPDX-License-Identifier: Apache-2.0
#include "train/Rollouts.hpp"

#include <utility>

#include "rollout/GeneratedSample.hpp"

namespace taper {

Rollouts::Rollouts(const RunOptions& options, const ModelFiles& files, const Ranks& ranks,
                   Generator& generator, Judge& judge)
    : options_(options.rollout),
      dynamic_(options.dynamic),
      seed_(options.seed),
      generator_(generator),
      judge_(judge),
      prompts_(options.data, files, options.rollout.max_prompt_tokens, options.seed),
      lengths_(options.rollout.lengths, options.seed, options.rollout.max_new_tokens, ranks),
      stops_(lengths_.is_on() ? StopOptions() : options.rollout.stops(files)),
      journal_(RunDirectory(options.output), options.has_journal(), ranks) {}

SamplingOptions Rollouts::sampling(std::int64_t iteration) const {
  SamplingOptions sampling = options_.sampling;
  sampling.seed = seed_;
  sampling.iteration = static_cast<std::uint64_t>(iteration);
  return sampling;
}

std::optional<Batch> Rollouts::collect(std::int64_t iteration, std::int64_t first_batch,
                                       StopAgreement& stop, PhaseTimer& timer) {
  const int wanted = options_.prompts, most = dynamic_.on ? dynamic_.max_rounds : 1;
  SampleSet all;
  preempted_before_ = generator_.preemptions();
  generations_.clear();
  made_.clear();
  generator_.recall(journal_.read(iteration));
  judge_.begin_figures();
  int rounds = 0;
  while (rounds < most && (rounds == 0 || count_teaching_groups(all.all()) < wanted)) {
    const auto prompts = prompts_.training(first_batch + rounds, wanted);
    // Ordinals go on from round to round: no two requests of an iteration share random numbers.
    auto samples = round(prompts, std::int64_t{rounds} * wanted, sampling(iteration), stop, timer);
    if (!samples) return std::nullopt;
    generator_.learn(outcomes_of(samples->all()));
    generations_.push_back(generator_.report());
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
  return Batch(std::move(all), counts);
}

// Generates, and scores where the responses were made. None if a stop was agreed on.
std::optional<SampleSet> Rollouts::round(const std::vector<Prompt>& prompts,
                                         std::int64_t first_prompt, const SamplingOptions& sampling,
                                         StopAgreement& stop, PhaseTimer& timer) {
  timer.start("gen");
  std::vector<Request> requests;
  for (std::size_t i = 0; i < prompts.size(); ++i)
    requests.push_back({{first_prompt + static_cast<std::int64_t>(i), 0},
                        options_.samples,
                        prompts[i].tokens,
                        options_.max_new_tokens});
  lengths_.pin(requests, static_cast<std::int64_t>(sampling.iteration));
  judge_.begin(prompts, first_prompt);
  auto completions = generator_.run(
      requests, sampling, stops_, [&](const Group& group) { return stop.is_wanted_in(group); },
      [&](const Completion& c) {
        judge_.submit({.id = c.id, .prompt = c.prompt, .response = c.response, .finish = c.finish});
      });
  if (generator_.stopped()) completions = generator_.take_interrupted();
  std::vector<Sample> samples = as_samples(std::move(completions));
  if (journal_.is_on())
    for (const Sample& s : samples) made_.push_back(record_of(s, false));
  if (stop.reached()) return std::nullopt;
  timer.start("reward");
  return judge_.finish(std::move(samples), [&] { return stop.reached(); });
}

}  // namespace taper
