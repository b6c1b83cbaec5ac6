// SPDX-License-Identifier: Apache-2.0
#include "run/RunStart.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "checkpoint/Checkpoint.hpp"
#include "checkpoint/Manifest.hpp"
#include "comm/Collectives.hpp"
#include "io/AtomicFile.hpp"
#include "results/RunDirectory.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

// What loading would try, newest first. In the run's own folder one that a kill left as
// iter_NNNNNN.old counts: the run puts it back before it loads. Folders of other runs stay as they
// are.
std::vector<fs::path> candidates(const ResumePoint& from) {
  std::vector<fs::path> list = CheckpointStore::list(from.store);
  if (from.is_own)
    for (const fs::path& target : CheckpointStore::being_replaced(from.store))
      if (!fs::exists(target)) list.push_back(old_path(target));
  const auto iteration = [](const fs::path& path) {
    return *iteration_of_name(path.stem().string());
  };
  std::sort(list.begin(), list.end(),
            [&](const fs::path& a, const fs::path& b) { return iteration(a) > iteration(b); });
  return list;
}

// Why a run cannot start from the checkpoint, the same on all ranks; empty if it can. Rank 0 gets
// the state. Collective over the world.
std::string look_at(RunStart& start, const ModelFiles& files, const Ranks& ranks,
                    CheckpointCheck check) {
  std::string problem;
  if (check == CheckpointCheck::kContents)
    problem = join(manifest_problems(start.checkpoint, ranks.world()), "; ");
  if (problem.empty() && ranks.rank() == 0) {
    try {
      start.state = read_state_info(CheckpointDirectory(start.checkpoint).state(), files);
    } catch (const std::exception& error) {
      problem = error.what();
    }
  }
  return broadcast_string(ranks.world(), problem, 0);
}

}  // namespace

void require_same_seed(const fs::path& checkpoint, std::uint64_t checkpoint_seed,
                       std::uint64_t run_seed) {
  TAPER_VALIDATE(checkpoint_seed == run_seed,
                 "the checkpoint "
                     << path_text(checkpoint) << " was made with Run/Seed " << checkpoint_seed
                     << " (this run has " << run_seed
                     << "); use the same seed or another Output/Directory "
                        "(--resume none starts over, and deletes what this one holds)");
}

std::string start_text(const RunStart& start, const std::string& beginning, const std::string& unit,
                       const std::string& over) {
  if (start.is_afresh()) return "would start " + beginning;
  const std::string after = "after " + unit + " " + std::to_string(start.state.iteration) +
                            " (checkpoint " + path_text(start.checkpoint) + ")";
  return over.empty() ? "would resume " + after : "would find nothing to do " + after + ": " + over;
}

RunStart find_run_start(const ResumePoint& from, std::uint64_t seed, const ModelFiles& files,
                        const Ranks& ranks, CheckpointCheck check) {
  if (from.is_start()) return {};
  const bool is_named = !from.checkpoint.empty();
  const auto there = from_rank_0(
      ranks, [&] { return is_named ? std::vector{from.checkpoint} : candidates(from); });
  std::string problem;
  for (const fs::path& checkpoint : there) {
    RunStart start{checkpoint, {}};
    problem = look_at(start, files, ranks, check);
    if (problem.empty()) {
      on_rank_0(ranks, [&] { require_same_seed(checkpoint, start.state.seed, seed); });
      return start;
    }
    if (is_named) CheckpointStore::fail_unusable(checkpoint, problem);
    if (check == CheckpointCheck::kContents && ranks.rank() == 0)  // else loading will say so
      CheckpointStore::warn_passed_over(checkpoint, problem);
  }
  if (!problem.empty()) CheckpointStore::fail_none_usable(from.store, problem);
  return {};
}

}  // namespace taper
