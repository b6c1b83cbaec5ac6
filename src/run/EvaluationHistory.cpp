// SPDX-License-Identifier: Apache-2.0
#include "run/EvaluationHistory.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/Error.hpp"
#include "checkpoint/Checkpoint.hpp"
#include "io/AtomicFile.hpp"
#include "io/Json.hpp"
#include "results/RunDirectory.hpp"

namespace taper {
namespace {

constexpr double kWorst = -std::numeric_limits<double>::infinity();

// JSON has no infinity.
OrderedJson json_of(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

}  // namespace

void EvaluationHistory::note(std::int64_t iteration, double value) {
  forget_after(iteration - 1);
  entries_.push_back({iteration, std::isnan(value) ? kWorst : value});
}

void EvaluationHistory::note_figures(std::int64_t iteration, const MetricValues& figures) {
  for (const auto& [name, value] : figures)
    if (name == options_.metric) note(iteration, name.ends_with("/loss") ? -value : value);
}

void EvaluationHistory::forget_after(std::int64_t iteration) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.iteration > iteration; });
}

void EvaluationHistory::forget_between(int every) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.iteration % every != 0; });
}

std::optional<EvaluationHistory::Entry> EvaluationHistory::best() const {
  const auto at =
      std::max_element(entries_.begin(), entries_.end(),
                       [](const Entry& a, const Entry& b) { return a.value < b.value; });
  return at == entries_.end() ? std::nullopt : std::optional(*at);
}

int EvaluationHistory::without_progress() const {
  double reached = kWorst;
  int count = 0;
  for (const Entry& entry : entries_) {
    const bool is_progress = entry.value > reached + options_.min_delta;
    if (is_progress) reached = entry.value;
    count = is_progress ? 0 : count + 1;
  }
  return count;
}

bool EvaluationHistory::is_exhausted() const {
  return options_.patience > 0 && without_progress() >= options_.patience;
}

std::string EvaluationHistory::to_json(const std::string& checkpoint) const {
  OrderedJson json;
  json["metric"] = options_.metric;
  if (const auto entry = best()) {
    json["iteration"] = entry->iteration;
    json["value"] = json_of(entry->value);
  }
  json["checkpoint"] = checkpoint.empty() ? OrderedJson(nullptr) : OrderedJson(checkpoint);
  json["evaluations"] = OrderedJson::array();
  for (const Entry& entry : entries_)
    json["evaluations"].push_back(
        OrderedJson{{"iteration", entry.iteration}, {"value", json_of(entry.value)}});
  return json.dump(2) + "\n";
}

EvaluationHistory EvaluationHistory::from_json(const std::string& text, const std::string& where,
                                               const BestOptions& options) {
  EvaluationHistory history(options);
  const Json json = parse_json(text, where);
  try {
    if (json.at("metric").get<std::string>() != options.metric) return history;
    for (const Json& entry : json.at("evaluations"))
      history.note(entry.at("iteration").get<std::int64_t>(),
                   entry.at("value").is_null() ? kWorst : entry.at("value").get<double>());
  } catch (const Json::exception& error) {
    TAPER_FAIL(ExitCode::kBadInput,
               where << " is not a record of the best checkpoint (" << error.what()
                     << "); remove it, and the best checkpoint is determined again");
  }
  return history;
}

void write_best_file(const RunDirectory& run, const EvaluationHistory& history,
                     const CheckpointStore& checkpoints) {
  const auto best = history.best();
  std::string kept;  // by its name within the run, which may be moved
  if (best && checkpoints.has(best->iteration))
    kept = (run.checkpoints().filename() / iteration_name(best->iteration)).string();
  write_file_atomically(run.best(), history.to_json(kept));
}

}  // namespace taper
