// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "io/FileLock.hpp"
#include "session/Ranks.hpp"

namespace taper {

// The output of a job, for this job alone as long as this object lives: rank 0 has a lock file
// (FileLock.hpp). Two jobs that write metrics, checkpoints and rollouts into one directory would
// leave a mixture that belongs to neither.
//
// A job that ends removes the file, one of a single rank also if it fails. One that is killed
// leaves it, and so does one of several ranks that fails: the others may still write when rank 0
// is done, until MPI_Abort has ended them. The next job takes the file over once rank 0's process
// is gone.
class OutputLock {
 public:
  // Before anything is written. `what` names the output in errors. Throws Error (kBadInput) on all
  // ranks, naming who has it. Collective over the world.
  OutputLock(const Ranks& ranks, const std::string& what, const std::filesystem::path& file);
  // Not collective: rank 0 lets go. Without an exception on its way no rank may write any more.
  ~OutputLock();

  // Throws Error (kBadInput) on all ranks if another job has the output and does not end within
  // seconds. Writes nothing. Collective over the world.
  static void require_free(const Ranks& ranks, const std::string& what,
                           const std::filesystem::path& file);

  // The lock file of a model directory, which is replaced as a whole: beside it. That of a run is
  // in its directory (RunDirectory.hpp).
  static std::filesystem::path of_model(const std::filesystem::path& directory);

 private:
  int ranks_, exceptions_;  // on their way when this object was made
  FileLock lock_;           // rank 0's
};

}  // namespace taper
