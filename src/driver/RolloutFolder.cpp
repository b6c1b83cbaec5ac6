// SPDX-License-Identifier: Apache-2.0
#include "driver/RolloutFolder.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "driver/IterationName.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

// The iteration of a file iter_NNNNNN<ending>, nothing for other names.
std::optional<std::int64_t> iteration_of(const fs::path& file, std::string_view ending) {
  const std::string name = file.filename().string();
  if (!name.ends_with(ending)) return std::nullopt;
  return iteration_of_name(std::string_view(name).substr(0, name.size() - ending.size()));
}

}  // namespace

fs::path rollout_path(const fs::path& directory, std::int64_t iteration) {
  return directory / (iteration_name(iteration) + ".h5");
}

std::vector<fs::path> rollout_files(const fs::path& directory) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  if (fs::is_directory(directory))
    for (const auto& entry : fs::directory_iterator(directory))
      if (const auto iteration = iteration_of(entry.path(), ".h5");
          iteration && entry.is_regular_file())
        found.emplace_back(*iteration, entry.path());
  std::sort(found.begin(), found.end());
  std::vector<fs::path> files;
  for (auto& [iteration, path] : found) files.push_back(std::move(path));
  return files;
}

void remove_rollouts_after(const fs::path& directory, std::int64_t finished) {
  std::vector<fs::path> stale;
  for (const auto& entry : fs::directory_iterator(directory)) {
    auto iteration = iteration_of(entry.path(), ".h5");
    if (!iteration) iteration = iteration_of(entry.path(), ".h5.part");
    if (iteration && *iteration > finished && entry.is_regular_file())
      stale.push_back(entry.path());
  }
  for (const auto& path : stale) fs::remove(path);
}

}  // namespace taper
