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

StateInfo look_at(const fs::path& checkpoint, const ModelFiles& files, CheckpointCheck check) {
  if (check == CheckpointCheck::kContents) {
    const auto problems = CheckpointStore::problems(checkpoint);
    TAPER_VALIDATE(problems.empty(), join(problems, "; "));
  }
  return read_state_info(CheckpointDirectory(checkpoint).state(), files);
}

RunStart newest(const ResumePoint& from, const ModelFiles& files, CheckpointCheck check) {
  std::string last_problem;
  for (const fs::path& checkpoint : candidates(from)) {
    try {
      return {checkpoint, look_at(checkpoint, files, check)};
    } catch (const std::exception& error) {
      last_problem = error.what();
    }
    if (check == CheckpointCheck::kContents)  // else loading will say so
      CheckpointStore::warn_passed_over(checkpoint, last_problem);
  }
  if (!last_problem.empty()) CheckpointStore::fail_none_usable(from.store, last_problem);
  return {};
}

RunStart named(const fs::path& checkpoint, const ModelFiles& files, CheckpointCheck check) {
  try {
    return {checkpoint, look_at(checkpoint, files, check)};
  } catch (const std::exception& error) {
    CheckpointStore::fail_unusable(checkpoint, error.what());
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

std::string start_text(const RunStart& start, const std::string& beginning, const std::string& unit,
                       std::int64_t last) {
  if (start.is_afresh()) return "would start " + beginning;
  const std::int64_t done = start.state.iteration;
  const std::string after = "after " + unit + " " + std::to_string(done) + " (checkpoint " +
                            path_text(start.checkpoint) + ")";
  if (last == 0 || done < last) return "would resume " + after;
  return "would find nothing to do " + after + ": Training/Iterations is " + std::to_string(last);
}

RunStart find_run_start(const ResumePoint& from, std::uint64_t seed, const ModelFiles& files,
                        const Ranks& ranks, CheckpointCheck check) {
  if (from.is_start()) return {};
  RunStart start;
  start.checkpoint = from_rank_0(ranks, [&] {
    start =
        from.checkpoint.empty() ? newest(from, files, check) : named(from.checkpoint, files, check);
    if (!start.is_afresh()) require_same_seed(start.checkpoint, start.state.seed, seed);
    return start.checkpoint;
  });
  return start;
}

}  // namespace taper
