// SPDX-License-Identifier: Apache-2.0
#include "driver/RolloutFolder.hpp"

#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace taper {
namespace {

// The iteration of iter_NNNNNN.h5 or iter_NNNNNN.h5.part (six digits or more), nothing for other
// names.
std::optional<std::int64_t> iteration_of(std::string_view name) {
  constexpr std::string_view kPrefix = "iter_";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::int64_t iteration = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), iteration);
  const auto digits = static_cast<std::size_t>(end - name.data());
  if (error != std::errc() || iteration < 0 || digits < 6) return std::nullopt;
  const std::string_view rest = name.substr(digits);
  if (rest != ".h5" && rest != ".h5.part") return std::nullopt;
  return iteration;
}

}  // namespace

std::filesystem::path rollout_path(const std::filesystem::path& directory, std::int64_t iteration) {
  char name[32];
  std::snprintf(name, sizeof name, "iter_%06lld.h5", static_cast<long long>(iteration));
  return directory / name;
}

void remove_rollouts_after(const std::filesystem::path& directory, std::int64_t finished) {
  std::vector<std::filesystem::path> stale;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const auto iteration = iteration_of(entry.path().filename().string());
    if (iteration && *iteration > finished && entry.is_regular_file())
      stale.push_back(entry.path());
  }
  for (const auto& path : stale) std::filesystem::remove(path);
}

}  // namespace taper
