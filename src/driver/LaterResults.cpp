// SPDX-License-Identifier: Apache-2.0
#include "driver/LaterResults.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "driver/Checkpoint.hpp"
#include "driver/IterationName.hpp"
#include "driver/RolloutFolder.hpp"
#include "io/MetricsLog.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

std::string iterations_text(const std::vector<std::int64_t>& iterations) {
  const auto [first, last] = std::minmax_element(iterations.begin(), iterations.end());
  if (*first == *last) return "iteration " + std::to_string(*first);
  return "iterations " + std::to_string(*first) + " to " + std::to_string(*last);
}

std::vector<std::int64_t> later(std::vector<std::int64_t> iterations, std::int64_t finished) {
  std::erase_if(iterations, [&](std::int64_t iteration) { return iteration <= finished; });
  return iterations;
}

std::vector<std::int64_t> iterations_of_rollouts(const fs::path& output) {
  std::vector<std::int64_t> iterations;
  for (const fs::path& file : rollout_files(output / "rollouts"))
    iterations.push_back(*iteration_of_name(file.stem().string()));
  return iterations;
}

// Empty where there is no log; nothing where it cannot be read.
std::optional<std::vector<std::int64_t>> iterations_of_metrics(const fs::path& output) {
  std::vector<std::int64_t> iterations;
  if (!fs::exists(output / "metrics.jsonl")) return iterations;
  try {
    for (const MetricsRecord& record : read_metrics_log(output / "metrics.jsonl"))
      iterations.push_back(record.iteration);
  } catch (const Error&) {
    return std::nullopt;
  }
  return iterations;
}

}  // namespace

std::string later_results(const fs::path& output, std::int64_t finished) {
  std::vector<std::string> found;
  for (const fs::path& checkpoint : CheckpointStore::list(output / "checkpoints"))
    if (*iteration_of_name(checkpoint.filename().string()) > finished)
      found.push_back("checkpoints/" + checkpoint.filename().string());
  const auto rollouts = later(iterations_of_rollouts(output), finished);
  if (!rollouts.empty()) found.push_back("rollouts of " + iterations_text(rollouts));
  if (const auto all = iterations_of_metrics(output); !all) {
    found.push_back("metrics.jsonl, which cannot be read");
  } else if (const auto metrics = later(*all, finished); !metrics.empty()) {
    found.push_back("metrics of " + iterations_text(metrics));
  } else if (finished == 0 && fs::exists(output / "run.h5")) {
    found.push_back("run.h5");
  }
  return join(found, "; ");
}

void require_no_lost_checkpoints(const fs::path& output, std::int64_t first_checkpoint) {
  std::vector<std::int64_t> done;
  if (fs::exists(output / "metrics.jsonl"))
    for (const MetricsRecord& record : read_metrics_log(output / "metrics.jsonl"))
      done.push_back(record.iteration);
  // A run with the checkpoint of another one begins with a checkpoint of its own.
  const bool has_begun_later = !done.empty() && done.front() > 1;
  // The metrics of an iteration are written behind its checkpoint, its rollouts before that.
  for (const std::int64_t iteration : iterations_of_rollouts(output)) done.push_back(iteration - 1);
  const std::int64_t last = done.empty() ? 0 : *std::max_element(done.begin(), done.end());
  TAPER_VALIDATE(!has_begun_later && last < first_checkpoint,
                 path_text(output)
                     << " has results up to iteration " << last
                     << " but no checkpoint (this run would have saved one after iteration "
                     << (has_begun_later ? done.front() - 1 : first_checkpoint)
                     << ": its checkpoints were removed); put them back, choose another "
                        "Output/Directory, or remove these results and start over with "
                        "--resume none");
}

}  // namespace taper
