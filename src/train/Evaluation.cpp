// SPDX-License-Identifier: Apache-2.0
#include "train/Evaluation.hpp"

#include "base/Text.hpp"
#include "results/HeldOutNames.hpp"

namespace taper {
namespace {

// The set's own stream of random numbers; the plain set has 0, as ever.
std::uint64_t stream_of(const std::string& name) {
  constexpr std::uint64_t kField = (1u << 24) - 1;  // what a key has room for
  return name.empty() ? 0 : fnv1a(name) & kField;
}

// What judges a set in place of the run's rewards: its own rule, or that of the in-tree tasks if
// the run trains on files, to which its rewards belong.
std::optional<RewardRule> own_rule(const RunOptions& run, const EvaluationSetOptions& set) {
  if (set.rule != RewardRule::kTask) return set.rule;
  if (set.file.empty() && !run.data.prompts.empty()) return RewardRule::kTask;
  return std::nullopt;
}

std::vector<Prompt> prompts_of(const RunOptions& options, const std::string& name,
                               const EvaluationSetOptions& set, const ModelFiles& files) {
  const std::string option =
      name.empty() ? "Data/Evaluation Prompts" : "Evaluation/Sets/" + name + "/Prompt File";
  return held_out_prompts({set.file, set.task.empty() ? options.data.task : set.task, set.prompts},
                          {option, options.data.chat_template, options.rollout.max_prompt_tokens},
                          options.seed, files);
}

}  // namespace

Evaluation::Evaluation(const RunOptions& options, const ModelFiles& files, const Ranks& ranks,
                       Generator* generator, Judge& judge)
    : files_(files),
      generator_(generator),
      judge_(judge),
      evaluator_(files, ranks, options.rollout.stops(files)),
      every_(options.evaluation.every) {
  if (!options.evaluation.is_on()) return;
  for (const auto& [name, set] : options.evaluation.sets) add_set(options, name, set, ranks);
  if (!sets_.empty()) return;
  EvaluationSetOptions plain;
  plain.prompts = options.evaluation.prompts;
  plain.sampling.temperature = options.evaluation.temperature;
  plain.file = options.data.evaluation_prompts;
  plain.task = options.data.task;
  add_set(options, "", plain, ranks);
}

void Evaluation::add_set(const RunOptions& options, const std::string& name,
                         const EvaluationSetOptions& set, const Ranks& ranks) {
  EvaluationSet& added = sets_.emplace_back();
  added.name = name;
  added.prompts = prompts_of(options, name, set, files_);
  added.samples = set.samples;
  added.max_new_tokens =
      set.max_new_tokens == 0 ? options.rollout.max_new_tokens : set.max_new_tokens;
  added.sampling = set.sampling;
  added.sampling.seed = options.seed;
  added.sampling.iteration = stream_of(name);
  added.judge = &judge_;
  if (const auto rule = own_rule(options, set)) {
    RewardOptions reward;
    reward.name = name;
    reward.kind = kind_of(*rule);
    added.judge = &rule_judges_.emplace_back(std::vector{reward}, files_, ranks, nullptr, "");
  }
}

void Evaluation::add_to(Fingerprint& fingerprint) const {
  for (const EvaluationSet& set : sets_) add_prompts(fingerprint, set.prompts);
}

std::string Evaluation::description() const {
  std::vector<std::string> texts;
  for (const EvaluationSet& set : sets_) {
    const float temperature = set.sampling.temperature;
    const std::string how = temperature > 0.0f
                                ? format_text("sampled at temperature %g", temperature)
                                : std::string("greedy");
    const std::string prompts = count_text(std::ssize(set.prompts), "prompt");
    if (set.name.empty())
      texts.push_back(count_text(std::ssize(set.prompts), "response") + ", " + how +
                      " (Evaluation/Temperature)");
    else
      texts.push_back(set.name + ": " + prompts + " x " + std::to_string(set.samples) + ", " + how);
  }
  return join(texts, "; ");
}

std::optional<MetricValues> Evaluation::run(const Evaluator::Stop& stop) {
  MetricValues figures;
  judge_.begin_figures();
  for (const EvaluationSet& set : sets_) {
    auto answers = evaluator_.answer(set, generator_, stop);
    if (!answers) return std::nullopt;
    const auto found = evaluator_.judge(set, std::move(*answers), stop);
    if (!found) return std::nullopt;
    add(figures, recorded_figures(set.name, *found));
  }
  add(figures, judge_.metrics(kHeldOutRewards));
  return figures;
}

std::set<std::string> Evaluation::figures(const EvaluationOptions& options) {
  if (options.sets.empty()) return {kPlainHeldOutScore};
  std::set<std::string> names;
  for (const auto& [name, set] : options.sets)
    for (const std::string& score : recorded_scores(set.samples))
      names.insert(held_out_name(name, score));
  return names;
}

std::string Evaluation::lack_of_best(const EvaluationOptions& options,
                                     const MetricValues& figures) {
  const std::set<std::string> known = Evaluation::figures(options);
  std::vector<std::string> there;
  for (const auto& [name, value] : figures) {
    if (name == options.best.metric) return "";
    if (known.contains(name)) there.push_back(name);
  }
  if (options.best.metric.empty()) return "";
  return "Evaluation/Best By is " + options.best.metric +
         ", which this evaluation could not give (rewards dropped so many responses that no prompt "
         "has enough): the evaluation counts neither for the best checkpoint nor for "
         "Evaluation/Patience; if this goes on, choose one of " +
         join(there);
}

}  // namespace taper
