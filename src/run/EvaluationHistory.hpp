// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/MetricValues.hpp"
#include "results/RunDirectory.hpp"

namespace taper {

class CheckpointStore;

// How the best weights of a run are found, and when it has learned enough.
struct BestOptions {
  std::string metric;      // of the evaluations, see note_figures(); empty: none
  int patience = 0;        // evaluations without progress after which the run ends; 0: never
  double min_delta = 0.0;  // progress is by more than this
};

// One figure of a run's evaluations, by the number of iterations after which the weights were
// evaluated. A pure function of what was noted, whichever jobs noted it.
class EvaluationHistory {
 public:
  struct Entry {
    std::int64_t iteration = 0;
    double value = 0.0;

    template <class Self>
    static auto fields(Self& self) {
      return std::tie(self.iteration, self.value);
    }
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  explicit EvaluationHistory(BestOptions options = {}) : options_(std::move(options)) {}

  // Weights evaluated once more replace what was noted of them. Iterations do not go back. NaN
  // counts as worst.
  void note(std::int64_t iteration, double value);
  // Notes the metric if the figures have it. The larger the better: of a loss, "val/loss", minus
  // its value.
  void note_figures(std::int64_t iteration, const MetricValues& figures);
  // Forgets the weights of later iterations, for a run that goes on from there.
  void forget_after(std::int64_t iteration);

  // Forgets all but the weights of every so many iterations: what an end of the run has added.
  void forget_between(int every);

  // The first of the largest values.
  std::optional<Entry> best() const;
  // Evaluations since the last one that was better by more than min_delta than the one before that
  // was.
  int without_progress() const;
  // Whether the patience is at its end.
  bool is_exhausted() const;
  const std::vector<Entry>& entries() const { return entries_; }
  const BestOptions& options() const { return options_; }

  // What best.json says: {"metric", "iteration", "value", "checkpoint", "evaluations":
  // [{"iteration", "value"}]}; checkpoint is null if none is kept (of the weights that a run
  // begins with).
  std::string to_json(const std::string& checkpoint) const;
  // The entries of such a text; none if it is of another metric. Throws Error if it is no such
  // text; `where` names it.
  static EvaluationHistory from_json(const std::string& text, const std::string& where,
                                     const BestOptions& options);

 private:
  BestOptions options_;
  std::vector<Entry> entries_;
};

// Writes best.json of a run in one step, with the checkpoint of the best weights if `checkpoints`
// has it. Throws Error if it cannot be written. One rank only.
void write_best_file(const RunDirectory& run, const EvaluationHistory& history,
                     const CheckpointStore& checkpoints);

}  // namespace taper
