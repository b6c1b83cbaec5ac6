// SPDX-License-Identifier: Apache-2.0
//
// The part of a training job that concerns held-out figures and the best checkpoint.
#include "base/Path.hpp"
#include "base/TextFile.hpp"
#include "comm/Collectives.hpp"
#include "train/TrainJob.hpp"

namespace taper {

std::optional<MetricValues> TrainJob::evaluate() {
  if (figures_) return figures_;
  figures_ = evaluation_.run(generator_, judge_, ranks_,
                             [this](const Group& group) { return stop_.is_wanted_in(group); });
  generator_.load_planner(learned_);  // evaluations leave no trace in it
  if (!figures_) stop_.reached();     // agrees on the reason
  return figures_;
}

EvaluationHistory TrainJob::load_history() const {
  const BestOptions& by = options_.evaluation.best;
  if (by.metric.empty()) return EvaluationHistory();
  const std::filesystem::path file = best_file(options_.output);
  const std::string text = from_rank_0(
      ranks_, [&] { return std::filesystem::exists(file) ? read_text_file(file) : ""; });
  EvaluationHistory history(by);
  if (!text.empty()) history = EvaluationHistory::from_json(text, path_text(file), by);
  history.forget_after(finished_);
  // A run that ended here and goes on now must not differ from one that never ended.
  if (finished_ < options_.training.iterations) history.forget_between(options_.evaluation.every);
  return history;
}

// Of the weights behind the last iteration. The best so far are in a checkpoint before best.json
// says so; where a kill comes between, the job that goes on evaluates them again.
void TrainJob::note_evaluation(const MetricValues& figures) {
  const std::string& metric = options_.evaluation.best.metric;
  if (metric.empty()) return;
  for (const auto& [name, value] : figures)
    if (name == metric) history_.note(finished_, value);
  if (!history_.best()) return;
  const std::int64_t best = history_.best()->iteration;
  if (best == finished_ && saved_ < finished_) {
    ranks_.progress.set_phase("save_checkpoint");
    save_checkpoint(finished_, [] {});
    ranks_.progress.set_phase("testing");
  }
  checkpoints_.keep_always(best);
  if (ranks_.rank() == 0) write_best_file(options_.output, history_, checkpoints_);
}

bool TrainJob::evaluate_at_the_end() {
  std::vector<std::int64_t> done{options_.evaluation.every == 0 ||
                                 (log_ && log_->has_final_evaluation())};
  all_reduce_max(ranks_.world(), done);  // rank 0 has the log
  if (done.front() != 0) return true;
  ranks_.progress.set_iteration(finished_ + 1);  // evaluations come before an iteration
  ranks_.progress.set_phase("testing");
  const auto figures = evaluate();
  if (!figures) return false;
  note_evaluation(*figures);
  if (log_) log_->add_final_evaluation(finished_, *figures);
  return true;
}

}  // namespace taper
