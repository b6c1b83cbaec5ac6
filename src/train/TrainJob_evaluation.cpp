// SPDX-License-Identifier: Apache-2.0
//
// The part of a training job that concerns held-out figures and the best checkpoint.
#include "base/Log.hpp"
#include "comm/Collectives.hpp"
#include "train/TrainJob.hpp"

namespace taper {

std::optional<MetricValues> TrainJob::evaluate() {
  if (figures_) return figures_;
  figures_ = evaluation_.run([this](const Group& group) { return stop().is_wanted_in(group); });
  generator_.load_planner(planner_state_);  // evaluations leave no trace in it
  if (!figures_) stop().reached();          // agrees on the reason
  return figures_;
}

// The best so far are in a checkpoint before best.json says so; where a kill comes between, the job
// that goes on evaluates them again.
void TrainJob::note(const MetricValues& figures) {
  if (const std::string lack = Evaluation::lack_of_best(options_.evaluation, figures);
      ranks_.rank() == 0 && !lack.empty())
    TAPER_WARN(lack);
  if (note_evaluation(done(), figures)) save_unsaved();
  keep_best();
}

bool TrainJob::evaluate_at_the_end() {
  std::vector<std::int64_t> has_figures{!evaluation_.is_on() ||
                                        (log() && log()->has_final_evaluation())};
  all_reduce_max(ranks_.world(), has_figures);  // rank 0 has the log
  if (has_figures.front() != 0) return true;
  ranks_.progress.set_iteration(done() + 1);  // evaluations come before an iteration
  ranks_.progress.set_phase("testing");
  const auto figures = evaluate();
  if (!figures) return false;
  note(*figures);
  if (log()) log()->add_final_evaluation(done(), *figures);
  return true;
}

}  // namespace taper
