// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace taper {

// What a path holds, for people: an HDF5 file, a checkpoint, a run directory or a model directory.
// All data are read, so that damage shows. Throws Error naming what is damaged, missing or unknown.
std::string inspect(const std::filesystem::path& path);

// The tree of an HDF5 file: names, shapes, units, descriptions, attributes and the first values.
// Reads all of it.
std::string inspect_hdf5(const std::filesystem::path& file);

// Writes run.h5 of a run directory anew from metrics.jsonl, the log of record, and says what it
// holds.
std::string repair_run(const std::filesystem::path& run_directory);

}  // namespace taper
