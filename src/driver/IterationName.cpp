// SPDX-License-Identifier: Apache-2.0
#include "driver/IterationName.hpp"

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

}  // namespace taper
