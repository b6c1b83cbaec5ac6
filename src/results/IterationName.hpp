// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace taper {

// What checkpoints and rollout files of an iteration are called: "iter_000012", six digits or as
// many as it needs. From a million on, the order of the names is not that of the iterations.
std::string iteration_name(std::int64_t iteration);

// The iteration of such a name, nothing for all others.
std::optional<std::int64_t> iteration_of_name(std::string_view name);

struct IterationEntry {
  std::int64_t iteration = 0;
  std::filesystem::path path;
};

// What a directory has of the type whose name is that of an iteration and `ending`, in the order of
// the iterations. None where there is no such directory.
std::vector<IterationEntry> iteration_entries(const std::filesystem::path& directory,
                                              std::string_view ending,
                                              std::filesystem::file_type type);

}  // namespace taper
