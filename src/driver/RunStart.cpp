// SPDX-License-Identifier: Apache-2.0
#include "driver/RunStart.hpp"

#include <algorithm>
#include <exception>
#include <vector>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "comm/Collectives.hpp"
#include "driver/Checkpoint.hpp"
#include "driver/InputPath.hpp"
#include "io/AtomicFile.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

// Whole checkpoints, newest first. One that a kill left as iter_NNNNNN.old counts under that name:
// the run puts it back before it loads.
std::vector<fs::path> candidates(const fs::path& checkpoints) {
  std::vector<fs::path> list;
  if (!fs::is_directory(checkpoints)) return list;
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    const fs::path& path = entry.path();
    const std::string name = path.stem().string();
    const bool is_named = name.starts_with("iter_") && name.size() == 11;
    const fs::path whole = checkpoints / name;
    const bool is_whole = path == whole || (path == old_path(whole) && !fs::exists(whole));
    if (entry.is_directory() && is_named && is_whole) list.push_back(path);
  }
  std::sort(list.rbegin(), list.rend());
  return list;
}

StateInfo look_at(const fs::path& checkpoint, const ModelFiles& files, CheckpointCheck check) {
  if (check == CheckpointCheck::kContents) CheckpointStore::check(checkpoint);
  return read_state_info(checkpoint / "state.h5", files);
}

RunStart newest(const fs::path& checkpoints, const ModelFiles& files, CheckpointCheck check) {
  std::string last_problem;
  for (const fs::path& checkpoint : candidates(checkpoints)) {
    try {
      return {checkpoint, look_at(checkpoint, files, check)};
    } catch (const std::exception& error) {
      last_problem = error.what();
    }
    if (check == CheckpointCheck::kContents)  // else loading will say so
      TAPER_WARN("checkpoint " << path_text(checkpoint) << " is passed over: " << last_problem);
  }
  TAPER_VALIDATE(last_problem.empty(),
                 "no checkpoint in " << path_text(checkpoints) << " can be used (last problem: "
                                     << last_problem << "); --resume none starts afresh");
  return {};
}

RunStart named(const fs::path& checkpoint, const ModelFiles& files, CheckpointCheck check) {
  require_input_path("--resume", checkpoint);
  try {
    return {checkpoint, look_at(checkpoint, files, check)};
  } catch (const std::exception& error) {
    TAPER_FAIL(ExitCode::kBadInput,
               "checkpoint " << path_text(checkpoint) << " cannot be used: " << error.what());
  }
}

}  // namespace

void require_same_seed(const fs::path& checkpoint, std::uint64_t checkpoint_seed,
                       std::uint64_t run_seed) {
  TAPER_VALIDATE(checkpoint_seed == run_seed,
                 "the checkpoint " << path_text(checkpoint) << " was made with Run/Seed "
                                   << checkpoint_seed << " (this run has " << run_seed
                                   << "); use the same seed, or --resume none");
}

RunStart find_run_start(const fs::path& checkpoint, const fs::path& store, std::uint64_t seed,
                        const ModelFiles& files, const Ranks& ranks, CheckpointCheck check) {
  if (checkpoint.empty() && store.empty()) return {};
  RunStart start;
  std::string problem;
  if (ranks.rank() == 0) {
    try {
      start = checkpoint.empty() ? newest(store, files, check) : named(checkpoint, files, check);
      if (!start.is_afresh()) require_same_seed(start.checkpoint, start.state.seed, seed);
    } catch (const std::exception& error) {
      problem = error.what();
    }
  }
  problem = broadcast_string(ranks.world(), problem, 0);
  TAPER_VALIDATE(problem.empty(), problem);
  start.checkpoint = broadcast_string(ranks.world(), start.checkpoint.string(), 0);
  return start;
}

}  // namespace taper
