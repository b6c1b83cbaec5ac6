// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "driver/Ranks.hpp"
#include "io/FileLock.hpp"

namespace taper {

// The output of a job, for this job alone as long as this object lives: rank 0 has a lock file
// (FileLock.hpp). Two jobs that write metrics, checkpoints and rollouts into one directory would
// leave a mixture that belongs to neither.
//
// A job that ends, also by an error that rank 0 notices, removes the file. One that is killed, or
// ended by another rank, leaves it behind: on the same machine the next job sees that the process
// is gone and takes over at once; on another one after half a minute without a sign of life.
class OutputLock {
 public:
  // Before anything is written. `what` names the output in errors. Throws Error (kBadInput) on all
  // ranks, naming who has it. Collective over the world. Its end is not: rank 0 lets go when no
  // rank writes any more.
  OutputLock(const Ranks& ranks, const std::string& what, const std::filesystem::path& file);

  // The lock file of a run: in its directory.
  static std::filesystem::path of_run(const std::filesystem::path& directory);
  // Of a model directory, which is replaced as a whole: beside it.
  static std::filesystem::path of_model(const std::filesystem::path& directory);

 private:
  FileLock lock_;  // rank 0's
};

}  // namespace taper
