// SPDX-License-Identifier: Apache-2.0
#include "engine/StopMatcher.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/Error.hpp"

namespace taper {

StopMatcher::StopMatcher(StopOptions options) : options_(std::move(options)) {
  std::sort(options_.ids.begin(), options_.ids.end());
  for (const auto& text : options_.strings) {
    TAPER_VALIDATE(!text.empty(), "a stop string is empty (it would end every response at once)");
    longest_ = std::max(longest_, text.size());
  }
  TAPER_EXPECT(options_.strings.empty() || !options_.token_bytes.empty());
}

std::optional<FinishReason> StopMatcher::check(std::span<const std::int32_t> response) const {
  if (response.empty()) return std::nullopt;
  if (std::binary_search(options_.ids.begin(), options_.ids.end(), response.back()))
    return FinishReason::kEos;
  if (!options_.strings.empty() && ends_string(response)) return FinishReason::kStop;
  return std::nullopt;
}

// Whether the last byte of a stop string comes with the last token, at any place in it.
bool StopMatcher::ends_string(std::span<const std::int32_t> response) const {
  const std::string& last = options_.token_bytes[response.back()];
  std::string tail = last;
  for (std::size_t i = response.size() - 1; i > 0 && tail.size() < last.size() + longest_; --i)
    tail.insert(0, options_.token_bytes[response[i - 1]]);
  for (const auto& text : options_.strings) {
    const std::size_t at = tail.rfind(text);
    if (at != std::string::npos && at + text.size() > tail.size() - last.size()) return true;
  }
  return false;
}

}  // namespace taper
