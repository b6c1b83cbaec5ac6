// SPDX-License-Identifier: Apache-2.0
#include "driver/RunStart.hpp"

#include <algorithm>
#include <exception>
#include <vector>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "comm/Collectives.hpp"
#include "driver/Checkpoint.hpp"
#include "driver/InputPath.hpp"
#include "driver/IterationName.hpp"
#include "io/AtomicFile.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

// Whole checkpoints, newest first. One that a kill left as iter_NNNNNN.old counts: the run puts it
// back before it loads.
std::vector<fs::path> candidates(const fs::path& store) {
  std::vector<fs::path> list = CheckpointStore::list(store);
  for (const fs::path& target : CheckpointStore::being_replaced(store))
    if (!fs::exists(target)) list.push_back(old_path(target));
  const auto iteration = [](const fs::path& path) {
    return *iteration_of_name(path.stem().string());
  };
  std::sort(list.begin(), list.end(),
            [&](const fs::path& a, const fs::path& b) { return iteration(a) > iteration(b); });
  return list;
}

StateInfo look_at(const fs::path& checkpoint, const ModelFiles& files, CheckpointCheck check) {
  if (check == CheckpointCheck::kContents) {
    const auto problems = CheckpointStore::problems(checkpoint);
    TAPER_VALIDATE(problems.empty(), join(problems, "; "));
  }
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
