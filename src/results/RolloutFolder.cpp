// SPDX-License-Identifier: Apache-2.0
#include "results/RolloutFolder.hpp"

#include <utility>

#include "results/IterationName.hpp"

namespace taper {

namespace fs = std::filesystem;

fs::path rollout_path(const fs::path& directory, std::int64_t iteration) {
  return directory / (iteration_name(iteration) + ".h5");
}

std::vector<fs::path> rollout_files(const fs::path& directory) {
  std::vector<fs::path> files;
  for (auto& entry : iteration_entries(directory, ".h5", fs::file_type::regular))
    files.push_back(std::move(entry.path));
  return files;
}

void remove_rollouts_after(const fs::path& directory, std::int64_t finished) {
  for (const char* ending : {".h5", ".h5.part"})
    for (const auto& entry : iteration_entries(directory, ending, fs::file_type::regular))
      if (entry.iteration > finished) fs::remove(entry.path);
}

}  // namespace taper
