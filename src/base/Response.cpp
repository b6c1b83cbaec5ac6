// SPDX-License-Identifier: Apache-2.0
#include "base/Response.hpp"

#include <algorithm>
#include <bit>

namespace taper {

const char* to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEos:
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAbort:
      return "abort";
  }
  return "";
}

int length_bucket(std::int64_t response) {
  if (response < 2) return 0;
  return std::min(kLengthBuckets - 1,
                  static_cast<int>(std::bit_width(static_cast<std::uint64_t>(response))) - 1);
}

}  // namespace taper
