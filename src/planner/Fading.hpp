// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace taper {

inline constexpr int kLongestHalfLife = 8;  // generations

// A sum over past generations, one generation later: halved after half_life of them (1 to
// kLongestHalfLife).
inline std::int64_t faded(std::int64_t sum, int half_life) {
  // 2^(-1/n), 1/65536.
  constexpr std::array<std::int64_t, kLongestHalfLife + 1> kKeep{0,     32768, 46341, 52016, 55109,
                                                                 57052, 58386, 59358, 60097};
  return sum * kKeep[std::clamp(half_life, 1, kLongestHalfLife)] / 65536;
}

}  // namespace taper
