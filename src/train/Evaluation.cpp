// SPDX-License-Identifier: Apache-2.0
#include "train/Evaluation.hpp"

#include <algorithm>

#include "base/Text.hpp"
#include "results/HeldOutNames.hpp"
#include "reward/EvalStatistics.hpp"
#include "reward/RewardRule.hpp"
#include "rollout/GeneratedSample.hpp"

namespace taper {
namespace {

// The set's own stream of random numbers; the plain set has 0, as ever.
std::uint64_t stream_of(const std::string& name) {
  constexpr std::uint64_t kField = (1u << 24) - 1;  // what a key has room for
  return name.empty() ? 0 : fnv1a(name) & kField;
}

// What judges a set in place of the run's rewards: its own rule, or that of the in-tree tasks where
// the run trains on files, to which its rewards belong.
std::optional<RewardRule> own_rule(const RunOptions& run, const EvaluationSetOptions& set) {
  if (set.rule != RewardRule::kTask) return set.rule;
  if (set.file.empty() && !run.data.prompts.empty()) return RewardRule::kTask;
  return std::nullopt;
}

}  // namespace

Evaluation::Evaluation(const RunOptions& options, const ModelFiles& files)
    : files_(&files), seed_(options.seed), stops_(options.rollout.stops(files)) {
  if (!options.evaluation.is_on()) return;
  for (const auto& [name, set] : options.evaluation.sets) add_set(options, name, set);
  if (!sets_.empty()) return;
  EvaluationSetOptions plain;
  plain.prompts = options.evaluation.prompts;
  plain.sampling.temperature = options.evaluation.temperature;
  plain.file = options.data.evaluation_prompts;
  plain.task = options.data.task;
  add_set(options, "", plain);
}

void Evaluation::add_set(const RunOptions& options, const std::string& name,
                         const EvaluationSetOptions& set) {
  Set added{name, set, own_rule(options, set), {}};
  if (set.file.empty()) {
    added.prompts = held_out_items(set.task.empty() ? options.data.task : set.task, options.seed,
                                   set.prompts, *files_);
  } else {
    const std::string option = name.empty() ? options.data.names.evaluation_prompts
                                            : "Evaluation/Sets/" + name + "/Prompt File";
    added.prompts = read_prompts(set.file,
                                 {option, options.data.chat_template,
                                  options.rollout.max_prompt_tokens, options.data.too_long_advice},
                                 *files_);
    if (set.prompts > 0 && std::ssize(added.prompts) > set.prompts)
      added.prompts.resize(static_cast<std::size_t>(set.prompts));
  }
  if (added.options.max_new_tokens == 0)
    added.options.max_new_tokens = options.rollout.max_new_tokens;
  sets_.push_back(std::move(added));
}

void Evaluation::add_to(Fingerprint& fingerprint) const {
  for (const Set& set : sets_) add_prompts(fingerprint, set.prompts);
}

std::string Evaluation::description() const {
  std::vector<std::string> texts;
  for (const Set& set : sets_) {
    const auto& o = set.options;
    const float temperature = o.sampling.temperature;
    const std::string how = temperature > 0.0f
                                ? format_text("sampled at temperature %g", temperature)
                                : std::string("greedy");
    const std::string prompts = count_text(std::ssize(set.prompts), "prompt");
    if (set.name.empty())
      texts.push_back(count_text(std::ssize(set.prompts), "response") + ", " + how +
                      " (Evaluation/Temperature)");
    else
      texts.push_back(set.name + ": " + prompts + " x " + std::to_string(o.samples) + ", " + how);
  }
  return join(texts, "; ");
}

std::optional<SampleSet> Evaluation::answer(const Set& set, Generator& generator, Judge& judge,
                                            const Ranks& ranks,
                                            const std::function<bool(const Group&)>& stop) const {
  const auto& o = set.options;
  std::vector<Request> requests;
  for (std::size_t i = 0; i < set.prompts.size(); ++i)
    requests.push_back(
        {static_cast<std::int64_t>(i), 0, o.samples, set.prompts[i].tokens, o.max_new_tokens});
  SamplingOptions sampling = o.sampling;
  sampling.seed = seed_;
  sampling.purpose = RandomPurpose::kEvaluation;
  sampling.iteration = stream_of(set.name);
  if (!set.rule) judge.begin(set.prompts);
  auto completions = generator.run(requests, sampling, stops_, stop, [&](const Completion& c) {
    if (!set.rule)
      judge.submit({.id = c.id, .prompt = c.prompt, .response = c.response, .finish = c.finish});
  });
  if (generator.stopped()) return std::nullopt;
  std::vector<Sample> mine;
  for (Completion& c : completions) mine.push_back(as_sample(std::move(c)));
  if (!set.rule) return judge.finish(std::move(mine), [&] { return stop && stop(ranks.world()); });
  for (Sample& s : mine) {
    const std::string text = files_->tokenizer().decode(s.response, SkipSpecial::kYes);
    s.score = static_cast<float>(score_response(*set.rule, set.prompts[s.id.prompt].truth, text));
  }
  return SampleSet(ranks.world(), std::move(mine));
}

void Evaluation::add_figures(const Set& set, RewardRule rule, SampleSet& samples,
                             MetricValues& figures) const {
  double length = 0;
  for (const SampleSummary& s : samples.all()) length += s.response_tokens;
  const EvalScores scores = summarize(score_prompts(samples, set.prompts.size(), rule, *files_));
  if (set.name.empty()) {
    figures.emplace_back(kPlainHeldOutScore, scores.avg);
    return;
  }
  const auto add = [&](const std::string& figure, double value) {
    figures.emplace_back(held_out_name(set.name, figure), value);
  };
  const int samples_each = set.options.samples;
  add(avg_figure(samples_each), scores.avg);
  if (samples_each > 1) {
    for (const int k : pass_sizes(samples_each))
      if (k > 1 && scores.pass.contains(k)) add(pass_figure(k), scores.pass.at(k));
    add(maj_figure(samples_each), scores.maj);
  }
  add(kLengthFigure, length / static_cast<double>(samples.size()));
}

std::optional<MetricValues> Evaluation::run(Generator& generator, Judge& judge, const Ranks& ranks,
                                            const std::function<bool(const Group&)>& stop) const {
  MetricValues figures;
  judge.begin_figures();
  for (const Set& set : sets_) {
    auto samples = answer(set, generator, judge, ranks, stop);
    if (!samples) return std::nullopt;
    add_figures(set, set.rule.value_or(judge.answer_rule()), *samples, figures);
  }
  add(figures, judge.metrics(kHeldOutRewards));
  return figures;
}

std::set<std::string> Evaluation::figures(const EvaluationOptions& options) {
  if (options.sets.empty()) return {kPlainHeldOutScore};
  std::set<std::string> names;
  for (const auto& [name, set] : options.sets) {
    names.insert(held_out_name(name, avg_figure(set.samples)));
    if (set.samples == 1) continue;
    names.insert(held_out_name(name, maj_figure(set.samples)));
    for (const int k : pass_sizes(set.samples))
      if (k > 1) names.insert(held_out_name(name, pass_figure(k)));
  }
  return names;
}

}  // namespace taper
