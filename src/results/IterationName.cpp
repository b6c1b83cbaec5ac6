// SPDX-License-Identifier: Apache-2.0
#include "results/IterationName.hpp"

#include <algorithm>
#include <charconv>

#include "base/Text.hpp"

namespace taper {

std::string iteration_name(std::int64_t iteration) {
  return format_text("iter_%06lld", static_cast<long long>(iteration));
}

std::optional<std::int64_t> iteration_of_name(std::string_view name) {
  constexpr std::string_view kPrefix = "iter_";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size());
  std::int64_t iteration = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), iteration);
  if (error != std::errc() || iteration < 0 || iteration_name(iteration) != name)
    return std::nullopt;
  return iteration;
}

std::vector<IterationEntry> iteration_entries(const std::filesystem::path& directory,
                                              std::string_view ending,
                                              std::filesystem::file_type type) {
  std::vector<IterationEntry> entries;
  if (!std::filesystem::is_directory(directory)) return entries;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(ending)) continue;
    const std::string_view stem = std::string_view(name).substr(0, name.size() - ending.size());
    const auto iteration = iteration_of_name(stem);
    if (iteration && entry.status().type() == type) entries.push_back({*iteration, entry.path()});
  }
  std::sort(entries.begin(), entries.end(), [](const IterationEntry& a, const IterationEntry& b) {
    return a.iteration < b.iteration;
  });
  return entries;
}

}  // namespace taper
