// SPDX-License-Identifier: Apache-2.0
//
// The part of a fine-tuning job that concerns its best weights.
#include "base/Path.hpp"
#include "results/MetricsLog.hpp"
#include "tune/TuningJob.hpp"

namespace taper {
namespace {

// The larger the better: a loss is noted with a minus sign.
double goodness(const std::string& name, double value) {
  return name.ends_with("/loss") ? -value : value;
}

}  // namespace

EvaluationHistory TuningJob::load_history() const {
  const BestOptions by{options_.best_by, 0, 0.0};
  if (by.metric.empty() || done_ == 0) return EvaluationHistory(by);
  const std::filesystem::path file = std::filesystem::path(options_.run_path()) / "metrics.jsonl";
  const std::string text = from_rank_0(ranks_, [&] {
    EvaluationHistory found(by);
    if (!std::filesystem::exists(file)) return found.to_json("");
    for (const auto& record : read_metrics_log(file))
      for (const auto& [name, value] : record.values)
        if (name == by.metric && record.iteration <= done_)
          found.note(record.iteration, goodness(name, value));
    return found.to_json("");
  });
  EvaluationHistory history = EvaluationHistory::from_json(text, path_text(file), by);
  // A run that ended here and goes on now must not differ from one that never ended.
  if (done_ < steps_) history.forget_between(options_.validate_every);
  return history;
}

bool TuningJob::is_best(const MetricValues& figures) {
  for (const auto& [name, value] : figures)
    if (name == options_.best_by) history_.note(done_, goodness(name, value));
  const auto best = history_.best();
  return best && best->iteration == done_;
}

void TuningJob::keep_best() {
  const auto best = history_.best();
  if (!best) return;
  checkpoints_.keep_always(best->iteration);
  if (ranks_.rank() == 0) write_best_file(options_.run_path(), history_, checkpoints_);
}

}  // namespace taper
