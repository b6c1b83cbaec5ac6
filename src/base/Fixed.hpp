// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace taper {

// A number in units of 2^-46 whose sums are exact, whatever their order. It stays below 2^15; what
// does not, or is no number, is kNoFixed from then on.
struct Fixed {
  std::int64_t units = 0;

  friend constexpr bool operator==(const Fixed&, const Fixed&) = default;
};

inline constexpr float kFixedOne = 0x1p46f;  // units of 1
inline constexpr std::int64_t kFixedLimit = std::int64_t{1} << 61;
// Added to any number, or to itself, it is out of range again.
inline constexpr Fixed kNoFixed{-3 * kFixedLimit};

// To the nearest unit, ties to even.
constexpr Fixed to_fixed(float value) {
  const float units = value * kFixedOne;
  if (!(units > -0x1p61f && units < 0x1p61f)) return kNoFixed;
#if defined(__CUDA_ARCH__)
  return {__float2ll_rn(units)};
#else
  return {__builtin_llrintf(units)};
#endif
}

// Rounded once; NaN for kNoFixed.
constexpr float to_float(Fixed value) {
  if (value.units == kNoFixed.units) return std::bit_cast<float>(0x7fc00000u);
  return static_cast<float>(value.units) * (1.0f / kFixedOne);
}

constexpr Fixed operator+(Fixed a, Fixed b) {
  // As unsigned numbers: twice kNoFixed wraps.
  const auto sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(a.units) +
                                             static_cast<std::uint64_t>(b.units));
  return sum > -kFixedLimit && sum < kFixedLimit ? Fixed{sum} : kNoFixed;
}

constexpr Fixed& operator+=(Fixed& sum, Fixed term) {
  return sum = sum + term;
}

}  // namespace taper
