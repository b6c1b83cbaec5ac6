// SPDX-License-Identifier: Apache-2.0
#include "reward/Shaping.hpp"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "base/Text.hpp"

namespace taper {

double score_format(const FormatOptions& options, std::string_view response) {
  std::size_t behind = 0;
  const std::string text = trim(response);
  for (const std::string& marker : options.markers) {
    const std::size_t at = text.find(marker);
    if (at == std::string::npos || at < behind) return 0.0;
    if (text.find(marker, at + 1) != std::string::npos) return 0.0;
    if (options.enclosing && behind == 0 && at != 0) return 0.0;
    behind = at + marker.size();
  }
  return options.enclosing && behind != text.size() ? 0.0 : 1.0;
}

double length_penalty(const LengthOptions& options, std::int64_t tokens) {
  const std::int64_t over = std::max<std::int64_t>(tokens - options.target, 0);
  // No -0, which files and people would show.
  return over == 0 ? 0.0 : std::max(-options.per_token * static_cast<double>(over), options.lowest);
}

double overlong_penalty(const OverlongOptions& options, std::int64_t tokens) {
  const std::int64_t over = tokens - (std::int64_t{options.limit} - options.buffer);
  return over <= 0
             ? 0.0
             : -static_cast<double>(over) / static_cast<double>(options.buffer) * options.factor;
}

double repetition_penalty(const RepetitionOptions& options, std::span<const std::int32_t> tokens) {
  const auto n = static_cast<std::size_t>(options.n);
  if (tokens.size() < n) return 0.0;
  const std::size_t count = tokens.size() - n + 1;
  std::unordered_set<std::string_view> different;
  const auto* bytes = reinterpret_cast<const char*>(tokens.data());
  for (std::size_t i = 0; i < count; ++i)
    different.emplace(bytes + i * sizeof(std::int32_t), n * sizeof(std::int32_t));
  if (different.size() == count) return 0.0;
  return -options.penalty *
         (1.0 - static_cast<double>(different.size()) / static_cast<double>(count));
}

}  // namespace taper
