// SPDX-License-Identifier: Apache-2.0
//
// The parameters of a run, as its run.h5 and its checkpoints repeat them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace taper {

// One parameter of the run that wrote run.h5, e.g. section "Checkpoint", name "Every"; `fallback`
// if the file does not have it, or not as a value of this type. Throws Error if the file cannot be
// read. For one rank.
std::int64_t recorded_integer(const std::filesystem::path& run_file, const std::string& section,
                              const std::string& name, std::int64_t fallback);
std::string recorded_text(const std::filesystem::path& run_file, const std::string& section,
                          const std::string& name, const std::string& fallback);

// What differs between the parameters of two runs, both as Schema::current_yaml() writes them:
// "Training/Iterations: 3 -> 6", in the order of `now`; "(none)" stands for a parameter that one of
// the two versions of the program does not have.
std::vector<std::string> config_changes(const std::string& before, const std::string& now);

}  // namespace taper
