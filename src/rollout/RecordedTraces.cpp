// SPDX-License-Identifier: Apache-2.0
#include "rollout/RecordedTraces.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "io/Hdf5File.hpp"
#include "io/InputPath.hpp"
#include "results/RolloutFile.hpp"
#include "results/RunDirectory.hpp"

namespace taper {
namespace {

ReplayTrace read_trace(const std::filesystem::path& file, int max_running) {
  const RolloutSet set = read_rollouts(file);
  TAPER_VALIDATE(!set.records.empty(), path_text(file)
                                           << " holds no responses (no lengths to replay); name "
                                              "another run, or a rollout file that has some");
  TAPER_VALIDATE(!set.has_rounds, path_text(file)
                                      << " is of a run with rounds of tail batching (it holds what "
                                         "they have kept, not what was generated); name a run with "
                                         "Rollout/Rounds plain");
  ReplayTrace trace;
  trace.work.iteration = set.iteration;
  trace.work.sequences = static_cast<int>(set.records.size());
  trace.work.slots_per_rank = max_running;
  trace.work.samples = 0;
  for (const RolloutRecord& r : set.records) {
    trace.work.samples += r.id.prompt == set.records.front().id.prompt;
    trace.work.prompt_tokens += r.prompt_length;
    trace.work.max_new_tokens = std::max(trace.work.max_new_tokens, r.response_length());
    trace.outcomes.push_back({static_cast<std::int64_t>(trace.outcomes.size()), r.prompt_length,
                              r.response_length(), r.finish == FinishReason::kAbort});
  }
  return trace;
}

}  // namespace

std::vector<ReplayTrace> read_traces(const std::string& option, const std::filesystem::path& run,
                                     int max_running) {
  require_input_path(option, run);
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(run)) {
    const std::filesystem::path rollouts = RunDirectory(run).rollouts();
    files = rollout_files(std::filesystem::is_directory(rollouts) ? rollouts : run);
  } else {
    files.push_back(run);
  }
  TAPER_VALIDATE(!files.empty(), option << " is " << path_text(run)
                                        << " (no rollouts/iter_*.h5 in it); name the directory of "
                                           "a run, or a rollout file");
  std::vector<ReplayTrace> traces;
  for (const auto& file : files) traces.push_back(read_trace(file, max_running));
  int limit = 1;
  for (const ReplayTrace& t : traces) limit = std::max(limit, t.work.max_new_tokens);
  for (ReplayTrace& t : traces) t.work.max_new_tokens = limit;
  return traces;
}

DraftTable read_drafts(const std::filesystem::path& run) {
  DraftTable table;
  const std::filesystem::path path = RunDirectory(run).run_file();
  if (!std::filesystem::exists(path)) return table;
  const Hdf5File file = Hdf5File::open_read(path);
  if (!file.exists("/draft_batches")) return table;
  const auto column = [&](const char* name) {
    return file.read<std::int64_t>(std::string("/draft_batches/") + name).values;
  };
  const auto times = [&](const char* name) {
    return file.read<double>(std::string("/draft_batches/") + name).values;
  };
  const auto batch = column("least_batch"), sequences = column("sequences"),
             drafted = column("drafted"), accepted = column("accepted");
  const std::vector<double> seconds = times("time_s"), model = times("model_s");
  struct Sums {
    std::int64_t sequences = 0, drafted = 0, accepted = 0;
    double seconds = 0, model = 0;
  };
  std::map<std::int64_t, Sums> sums;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Sums& s = sums[batch[i]];
    s.sequences += sequences[i];
    s.drafted += drafted[i];
    s.accepted += accepted[i];
    s.seconds += seconds[i];
    s.model += model[i];
  }
  for (const auto& [least, sum] : sums) {
    const Sums& s = sum;  // a lambda cannot capture a structured binding
    const auto share = [&](std::int64_t tokens, int i) {
      return clamped<std::uint8_t>(DraftShares::kShareOne * (tokens - i * s.sequences) /
                                   std::max<std::int64_t>(1, s.sequences));
    };
    DraftShares shares;
    for (int i = 0; i < DraftShares::kLengths; ++i) {
      shares.drafted[i] = share(s.drafted, i);
      shares.accepted[i] = share(s.accepted, i);
    }
    // That there were none is known, too (DraftReach::shares).
    if (s.sequences > 0) shares.drafted[0] = std::max<std::uint8_t>(1, shares.drafted[0]);
    if (s.seconds > s.model)
      shares.model =
          clamped<std::uint16_t>(std::llround(kRatioOne * s.model / (s.seconds - s.model)));
    table.observe(static_cast<int>(least), shares);
  }
  return table;
}

}  // namespace taper
