// SPDX-License-Identifier: Apache-2.0
#include "run/ResumePoint.hpp"

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "checkpoint/Checkpoint.hpp"
#include "results/RunDirectory.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

ResumePoint point_of(const fs::path& given) {
  TAPER_VALIDATE(fs::is_directory(given),
                 "--resume " << path_text(given) << " is not a directory; " << path_advice(given));
  const fs::path directory = place_of(given);
  if (CheckpointStore::is_checkpoint(directory)) return {directory, {}};
  for (const fs::path& store : {RunDirectory(directory).checkpoints(), directory})
    if (!CheckpointStore::list(store).empty()) return {{}, store};
  TAPER_FAIL(ExitCode::kBadInput,
             "--resume " << path_text(given)
                         << " is neither a checkpoint (a directory with manifest.json) nor a run "
                            "that has one; name e.g. RUN_DIR/checkpoints/iter_000010, or use "
                            "--resume auto");
}

// The first result of a run in a directory; empty if there is none.
fs::path run_in(const RunDirectory& output) {
  for (const fs::path& file : {output.metrics(), output.run_file()})
    if (fs::exists(file)) return file;
  const auto checkpoints = CheckpointStore::list(output.checkpoints());
  if (!checkpoints.empty()) return checkpoints.front();
  const auto rollouts = rollout_files(output.rollouts());
  return rollouts.empty() ? fs::path() : rollouts.front();
}

ResumePoint resolve(const fs::path& given, const fs::path& output, const std::string& key) {
  ResumePoint point = point_of(given);
  const fs::path store = point.store.empty() ? point.checkpoint.parent_path() : point.store;
  point.is_own = store == place_of(RunDirectory(output).checkpoints());
  if (point.is_own) return point;
  const fs::path other = run_in(output);
  TAPER_VALIDATE(other.empty(),
                 "--resume " << path_text(given) << " belongs to another run than " << key << " "
                             << path_text(output) << " (which contains " << path_text(other)
                             << "); to start a new run from that checkpoint, name a new " << key
                             << "; to continue the run that is there, use --resume auto");
  return point;
}

}  // namespace

ResumePoint find_resume_point(const Ranks& ranks, const std::string& resume, const fs::path& output,
                              const std::string& key) {
  if (resume == "none") return {};
  if (resume == "auto") return {{}, RunDirectory(output).checkpoints()};
  return from_rank_0(ranks, [&] { return resolve(resume, output, key); });
}

}  // namespace taper
