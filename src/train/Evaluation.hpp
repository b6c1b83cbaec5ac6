// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/MetricValues.hpp"
#include "evaluate/Evaluator.hpp"
#include "train/RunOptions.hpp"

namespace taper {

// The evaluations of a training run: which held-out sets, and when.
class Evaluation {
 public:
  // Reads the files. Refers to files, ranks, generator, which is null on ranks that do not
  // generate, and judge. Throws Error naming the key, or file and line, of what is wrong.
  Evaluation(const RunOptions& options, const ModelFiles& files, const Ranks& ranks,
             Generator* generator, Judge& judge);

  // Of the prompts of all sets.
  void add_to(Fingerprint& fingerprint) const;

  bool is_on() const { return every_ > 0; }
  // Whether the weights before an iteration are evaluated.
  bool is_due(std::int64_t iteration) const { return is_on() && (iteration - 1) % every_ == 0; }
  // What the figures are of, for the log.
  std::string description() const;

  // Answers all sets with the generator's weights and judges the answers: by the rule of the set,
  // or, if it has none of its own, by the judge of the run. The recorded figures of each set (see
  // Evaluator.hpp) and "val/reward/..." of all responses that the judge had (Judge::metrics), the
  // same on all ranks and for the same weights in all iterations. Nothing if `stop` stops a
  // generation or the wait for the judge. Collective over the world.
  std::optional<MetricValues> run(const Evaluator::Stop& stop);

  // The figures that the sets will give, by which a best checkpoint can be chosen.
  static std::set<std::string> figures(const EvaluationOptions& options);
  // What is to be said of an evaluation that did not give the figure by which the best checkpoint
  // is chosen; empty if it did, or none is named.
  static std::string lack_of_best(const EvaluationOptions& options, const MetricValues& figures);

 private:
  void add_set(const RunOptions& options, const std::string& name, const EvaluationSetOptions& set,
               const Ranks& ranks);

  const ModelFiles& files_;
  Generator* generator_;
  Judge& judge_;
  Evaluator evaluator_;
  int every_;                     // iterations
  std::list<Judge> rule_judges_;  // of sets with a rule of their own
  std::vector<EvaluationSet> sets_;
};

}  // namespace taper
