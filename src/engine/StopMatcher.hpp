// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/Response.hpp"

namespace taper {

// When a response ends besides reaching its limit. Without any, its tokens never end it.
struct StopOptions {
  std::vector<std::int32_t> ids;     // the stopping token belongs to the response
  std::vector<std::string> strings;  // matched on the bytes of the response, across token borders
  std::vector<std::string> token_bytes;  // by id; needed if there are strings
};

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
