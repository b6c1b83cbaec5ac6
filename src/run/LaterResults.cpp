// SPDX-License-Identifier: Apache-2.0
#include "run/LaterResults.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "checkpoint/Checkpoint.hpp"
#include "results/MetricsLog.hpp"
#include "results/RunDirectory.hpp"
#include "run/RunConfig.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

std::string iterations_text(const std::vector<std::int64_t>& iterations, const std::string& unit) {
  const auto [first, last] = std::minmax_element(iterations.begin(), iterations.end());
  if (*first == *last) return unit + " " + std::to_string(*first);
  return unit + "s " + std::to_string(*first) + " to " + std::to_string(*last);
}

std::vector<std::int64_t> later(std::vector<std::int64_t> iterations, std::int64_t finished) {
  std::erase_if(iterations, [&](std::int64_t iteration) { return iteration <= finished; });
  return iterations;
}

std::vector<std::int64_t> iterations_of_rollouts(const RunDirectory& output) {
  std::vector<std::int64_t> iterations;
  for (const fs::path& file : rollout_files(output.rollouts()))
    iterations.push_back(*iteration_of_name(file.stem().string()));
  return iterations;
}

// Of the lines in their order; empty if there is no log. Throws Error if one is broken.
std::vector<std::int64_t> iterations_of_metrics(const RunDirectory& output) {
  std::vector<std::int64_t> iterations;
  if (fs::exists(output.metrics()))
    for (const MetricsRecord& record : read_metrics_log(output.metrics()))
      iterations.push_back(record.iteration);
  return iterations;
}

// What there is of later metrics, as people read it; run.h5 if the log has nothing of them.
std::string later_metrics(const RunDirectory& output, std::int64_t finished,
                          const std::string& unit) {
  try {
    const auto metrics = later(iterations_of_metrics(output), finished);
    if (!metrics.empty()) return "metrics of " + iterations_text(metrics, unit);
  } catch (const Error&) {
    return "metrics.jsonl, which cannot be read";
  }
  return finished == 0 && fs::exists(output.run_file()) ? "run.h5" : "";
}

// Of the run that left the results, which is of the kind that `now` is; nothing if these do not
// say it. Run files of all kinds have Checkpoint/Every.
std::optional<CheckpointSchedule> schedule_of_results(const RunDirectory& output,
                                                      const CheckpointSchedule& now) {
  try {
    const fs::path run = output.run_file();
    const std::int64_t every = recorded_integer(run, "Checkpoint", "Every", now.every);
    if (now.last == 0) return CheckpointSchedule{every, 0};
    return CheckpointSchedule{every, recorded_integer(run, "Training", "Iterations", now.last)};
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Throws Error if results up to iteration `last` tell of a checkpoint.
void require_none_due(const RunDirectory& output, std::int64_t last, const CheckpointSchedule& now,
                      const std::string& unit, const std::string& advice) {
  const std::optional<CheckpointSchedule> then = schedule_of_results(output, now);
  const std::optional<std::int64_t> due = then.value_or(now).first();
  if (!due) return;
  TAPER_VALIDATE(last < *due,
                 path_text(output.path())
                     << " has results up to " << unit << ' ' << last << " but no checkpoint ("
                     << (then ? "by the settings in its run.h5 it saved one after "
                              : "this run would have saved one after ")
                     << unit << ' ' << *due
                     << (then ? ": its checkpoints were removed); "
                              : ": either its checkpoints were removed, or Checkpoint/Every was "
                                "larger then); ")
                     << advice);
}

}  // namespace

std::string later_results(const RunDirectory& output, std::int64_t finished,
                          const std::string& unit) {
  std::vector<std::string> found;
  for (const fs::path& checkpoint : CheckpointStore::list(output.checkpoints()))
    if (*iteration_of_name(checkpoint.filename().string()) > finished)
      found.push_back("checkpoints/" + checkpoint.filename().string());
  const auto rollouts = later(iterations_of_rollouts(output), finished);
  if (!rollouts.empty()) found.push_back("rollouts of " + iterations_text(rollouts, unit));
  if (const std::string metrics = later_metrics(output, finished, unit); !metrics.empty())
    found.push_back(metrics);
  return join(found, "; ");
}

void report_later_results(const RunDirectory& output, std::int64_t finished, Removal removal,
                          const std::string& unit) {
  const std::string removed = later_results(output, finished, unit);
  if (removed.empty()) return;
  const bool now = removal == Removal::kNow;
  TAPER_INFO((now ? "removing from " : "would remove from ")
             << path_text(output.path())
             << (now ? ", because this job starts after " : ", starting after ") << unit << ' '
             << finished << ": " << removed);
}

void require_no_lost_checkpoints(const RunDirectory& output, const CheckpointSchedule& now,
                                 const std::string& unit) {
  constexpr const char* kAdvice =
      "put them back, choose another output directory, or remove these results and start over with "
      "--resume none";
  std::vector<std::int64_t> done = iterations_of_metrics(output), begun = done;
  // Rollouts and metrics of an iteration are written before its checkpoint, the metrics while that
  // is complete under another name.
  for (const fs::path& path : CheckpointStore::unfinished(output.checkpoints()))
    if (const auto iteration = iteration_of_name(path.stem().string())) {
      std::erase(done, *iteration);
      done.push_back(*iteration - 1);
    }
  for (const std::int64_t iteration : iterations_of_rollouts(output)) {
    begun.push_back(iteration);
    done.push_back(iteration - 1);
  }
  if (begun.empty()) return;
  const std::int64_t first = *std::min_element(begun.begin(), begun.end());
  const std::int64_t last = *std::max_element(done.begin(), done.end());
  // Held-out figures before the first step of fine-tuning have the number 0.
  TAPER_VALIDATE(first <= 1,
                 path_text(output.path())
                     << " has results from " << unit << ' ' << first
                     << " on but no checkpoint (a run that starts there first saves a checkpoint "
                        "of its start: either its checkpoints were removed, or the results before "
                     << unit << ' ' << first << "); " << kAdvice);
  require_none_due(output, last, now, unit, kAdvice);
}

}  // namespace taper
