// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace taper {

// Lines for people, each with the name of its file.
struct Validation {
  std::vector<std::string> good;    // what was looked at and is right
  std::vector<std::string> notes;   // what the schema does not know, which is no fault
  std::vector<std::string> faults;  // one thing wrong each, with its dataset
};

// Holds an HDF5 file of Taper's against its schema (results/SchemaCheck.hpp), checksums of its own
// included; or the directory of a run or a checkpoint: all such files in it, and whether they say
// the same: run.h5 the metrics of metrics.jsonl and the lengths of the rollouts, rollouts the
// iteration of their name, checkpoints what is in their manifest. Reads all of it; a run may go on
// meanwhile. Throws Error if there is no such path, or nothing that has a schema. HDF5 itself
// may end the process on a file whose structure is damaged.
Validation validate_results(const std::filesystem::path& path);

}  // namespace taper
