// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driver/Generator.hpp"
#include "driver/Options.hpp"
#include "driver/PromptSource.hpp"
#include "io/MetricsLog.hpp"
#include "rl/Rollout.hpp"

namespace taper {

// The held-out sets of a training run: their prompts, how they are answered and judged, and the
// figures that come of it.
class Evaluation {
 public:
  // Reads the files. Throws Error naming the key, or file and line, of what is wrong.
  Evaluation(const RunOptions& options, const ModelFiles& files);

  bool is_on() const { return !sets_.empty(); }
  // What the figures are of, for the log.
  std::string description() const;

  // Answers all sets with the generator's weights and judges the answers. The figures, the same on
  // all ranks and for the same weights in all iterations: of a named set "val/<set>/avg@k" and,
  // for more than one sample, pass@j and maj@k, and the mean length of its responses; of the plain
  // set of Evaluation/Prompts "val/score/mean". Nothing where `stop` (Generator::run) stops a
  // generation. Collective over the world.
  std::optional<MetricValues> run(Generator& generator, const Ranks& ranks,
                                  const std::function<bool(const Group&)>& stop) const;

  // The figures that the sets will give, by which a best checkpoint can be chosen.
  static std::set<std::string> figures(const EvaluationOptions& options);
  // The name that a figure has behind the last iteration of a run: "val/score/final",
  // "val/<set>/final/avg@k".
  static std::string final_name(const std::string& name);
  static bool is_final_name(const std::string& name);
  // What a figure of a named set means, for its place in run.h5; empty for others.
  static std::string meaning(const std::string& name);

 private:
  struct Set {
    std::string name;  // empty: the plain one
    EvaluationSetOptions options;
    RewardRule rule = RewardRule::kTask;
    std::vector<Prompt> prompts;
  };
  void add_set(const RunOptions& options, const std::string& name, const EvaluationSetOptions& set);
  std::vector<Sample> answer(const Set& set, Generator& generator, const Ranks& ranks,
                             const std::function<bool(const Group&)>& stop) const;
  void add_figures(const Set& set, const std::vector<Sample>& samples, MetricValues& figures) const;

  const ModelFiles* files_;
  std::uint64_t seed_;
  StopOptions stops_;
  std::vector<Set> sets_;
};

}  // namespace taper
