// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace taper {

struct Inspection {
  std::string text;                   // what there is, for people
  std::vector<std::string> problems;  // one per damaged or unreadable file, with its name
  std::vector<std::string> advice;    // what to do about them, one per kind of file
};

// What a path holds: a file (FileInspector.hpp), a checkpoint, a run directory or a model
// directory. All data are read, so that damage shows; in a run or checkpoint one damaged file does
// not keep the others from being checked. Throws Error naming what is missing or unknown, and the
// damage if there is nothing else to look at.
Inspection inspect(const std::filesystem::path& path);

// Writes run.h5 of a run directory anew from metrics.jsonl, the log of record, and says what of it.
// Throws Error if a job is using the directory.
std::string repair_run(const std::filesystem::path& run_directory);

}  // namespace taper
