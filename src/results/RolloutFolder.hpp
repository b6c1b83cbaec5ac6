// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace taper {

// <directory>/iter_NNNNNN.h5
std::filesystem::path rollout_path(const std::filesystem::path& directory, std::int64_t iteration);

// The rollout files of a directory in the order of their iterations; none where there is no such
// directory.
std::vector<std::filesystem::path> rollout_files(const std::filesystem::path& directory);

// Removes the rollout files, and what is left of half-written ones, of iterations after `finished`:
// an abandoned run left them, and its iterations will come again. Whatever else a user keeps in the
// directory stays. One rank only.
void remove_rollouts_after(const std::filesystem::path& directory, std::int64_t finished);

}  // namespace taper
