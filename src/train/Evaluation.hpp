// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/PromptSource.hpp"
#include "results/MetricsLog.hpp"
#include "reward/Judge.hpp"
#include "rl/SampleSet.hpp"
#include "rollout/Generator.hpp"
#include "train/RunOptions.hpp"

namespace taper {

// The held-out sets of a training run: their prompts, how they are answered and judged, and the
// figures that come of it.
class Evaluation {
 public:
  // Reads the files. Throws Error naming the key, or file and line, of what is wrong.
  Evaluation(const RunOptions& options, const ModelFiles& files);

  // Of the prompts of all sets.
  void add_to(Fingerprint& fingerprint) const;

  bool is_on() const { return !sets_.empty(); }
  // What the figures are of, for the log.
  std::string description() const;

  // Answers all sets with the generator's weights and judges the answers: by the rule of the set,
  // or, where it has none of its own, by `judge`. The figures, the same on all ranks and for the
  // same weights in all iterations: of a named set "val/<set>/avg@k" and, for more than one sample,
  // pass@j and maj@k, and the mean length of its responses; of the plain set of Evaluation/Prompts
  // "val/score/mean"; and "val/reward/..." of all responses that `judge` had (Judge::metrics).
  // Dropped responses count in none of the scores. Nothing where `stop` (Generator::run) stops a
  // generation or the wait for the judge. Collective over the world.
  std::optional<MetricValues> run(Generator& generator, Judge& judge, const Ranks& ranks,
                                  const std::function<bool(const Group&)>& stop) const;

  // The figures that the sets will give, by which a best checkpoint can be chosen.
  static std::set<std::string> figures(const EvaluationOptions& options);

 private:
  struct Set {
    std::string name;  // empty: the plain one
    EvaluationSetOptions options;
    std::optional<RewardRule> rule;  // nothing: the run's rewards judge
    std::vector<Prompt> prompts;
  };
  void add_set(const RunOptions& options, const std::string& name, const EvaluationSetOptions& set);
  std::optional<SampleSet> answer(const Set& set, Generator& generator, Judge& judge,
                                  const Ranks& ranks,
                                  const std::function<bool(const Group&)>& stop) const;
  void add_figures(const Set& set, RewardRule rule, SampleSet& samples,
                   MetricValues& figures) const;

  const ModelFiles* files_;
  std::uint64_t seed_;
  StopOptions stops_;
  std::vector<Set> sets_;
};

}  // namespace taper
