// SPDX-License-Identifier: Apache-2.0
#include "evaluate/Evaluator.hpp"

#include <algorithm>
#include <utility>

#include "comm/Collectives.hpp"
#include "results/HeldOutNames.hpp"
#include "rollout/GeneratedSample.hpp"
#include "rollout/Requests.hpp"

namespace taper {

std::vector<std::string> recorded_scores(int samples) {
  std::vector<std::string> names{avg_figure(samples)};
  if (samples == 1) return names;
  for (const int j : pass_sizes(samples))
    if (j > 1) names.push_back(pass_figure(j));
  names.push_back(maj_figure(samples));
  return names;
}

MetricValues recorded_figures(const std::string& set, const SetFigures& figures) {
  if (set.empty()) return {{kPlainHeldOutScore, figures.scores.avg}};
  const MetricValues there = named_scores(figures.scores, figures.samples);
  MetricValues values;
  for (const std::string& name : recorded_scores(figures.samples))
    if (const auto found = std::ranges::find(there, name, &MetricValues::value_type::first);
        found != there.end())
      values.emplace_back(held_out_name(set, name), found->second);
  values.emplace_back(held_out_name(set, kLengthFigure), figures.mean_length);
  return values;
}

Evaluator::Evaluator(const ModelFiles& files, const Ranks& ranks, StopOptions stops)
    : files_(files), ranks_(ranks), stops_(std::move(stops)) {}

std::optional<std::vector<Sample>> Evaluator::answer(const EvaluationSet& set, Generator* generator,
                                                     const Stop& stop) {
  std::vector<Completion> completions;
  set.judge->begin(set.prompts);
  if (generator != nullptr) completions = generate(set, *generator, stop);
  std::vector<std::int32_t> stopped{generator != nullptr && generator->stopped() ? 1 : 0};
  // Ranks that do not generate know nothing of it.
  const bool is_apart = generator == nullptr || generator->ranks().size() < ranks_.size();
  if (is_apart) all_reduce_max(ranks_.world(), stopped);
  if (stopped.front() != 0) return std::nullopt;
  return as_samples(std::move(completions));
}

std::vector<Completion> Evaluator::generate(const EvaluationSet& set, Generator& generator,
                                            const Stop& stop) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < set.prompts.size(); ++i)
    requests.push_back({{static_cast<std::int64_t>(i), 0},
                        set.samples,
                        set.prompts[i].tokens,
                        set.max_new_tokens});
  SamplingOptions sampling = set.sampling;
  sampling.purpose = RandomPurpose::kEvaluation;
  const int replicas = generator.ranks().size() / generator.smallest_degree();
  return generator.run(
      in_parts(std::move(requests), replicas), sampling, stops_, stop, [&](const Completion& c) {
        set.judge->submit(
            {.id = c.id, .prompt = c.prompt, .response = c.response, .finish = c.finish});
      });
}

SetFigures Evaluator::figures_of(const EvaluationSet& set, SampleSet& samples) const {
  SetFigures figures;
  figures.samples = set.samples;
  for (const SampleSummary& s : samples.all()) {
    figures.mean_length += s.response_tokens;
    if (s.finish == FinishReason::kLength) ++figures.truncated;
  }
  figures.mean_length /= static_cast<double>(samples.size());
  const auto scores = score_prompts(samples, set.prompts.size(), set.judge->answer_rule(), files_);
  figures.scores = summarize(scores);
  std::map<std::string, std::vector<PromptScores>> by_source;
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (scores[i].samples > 0) by_source[set.prompts[i].source].push_back(scores[i]);
  for (const auto& [source, list] : by_source) figures.sources[source] = summarize(list);
  return figures;
}

std::optional<SetFigures> Evaluator::judge(const EvaluationSet& set, std::vector<Sample> answers,
                                           const Stop& stop) {
  std::function<bool()> stops_wait;
  if (stop) stops_wait = [&] { return stop(ranks_.world()); };
  auto samples = set.judge->finish(std::move(answers), stops_wait);
  if (!samples) return std::nullopt;
  return figures_of(set, *samples);
}

}  // namespace taper
