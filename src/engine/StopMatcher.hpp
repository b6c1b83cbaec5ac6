// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/Request.hpp"

namespace taper {

// Decides after each token whether a response has ended.
class StopMatcher {
 public:
  explicit StopMatcher(StopOptions options);

  // The reason to stop after the last token of `response`, if there is one.
  std::optional<FinishReason> check(std::span<const std::int32_t> response) const;

 private:
  bool ends_string(std::span<const std::int32_t> response) const;

  StopOptions options_;
  std::size_t longest_ = 0;  // bytes of the longest stop string
};

}  // namespace taper
