// SPDX-License-Identifier: Apache-2.0
#include "gpuemu/machine/SmallFloats.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/Bf16.hpp"

namespace taper::gpuemu {

std::uint16_t float_to_bf16(float x) {
  return x != x ? 0x7fff : to_bf16(x).bits;
}

float half_to_float(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const float fraction = static_cast<float>(bits & 1023);
  float x = exponent == 0    ? std::ldexp(fraction, -24)
            : exponent == 31 ? (fraction == 0 ? std::numeric_limits<float>::infinity()
                                              : std::numeric_limits<float>::quiet_NaN())
                             : std::ldexp(1024.0f + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -x : x;
}

std::uint16_t float_to_half(float x) {
  const auto sign = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16 & 0x8000);
  if (x != x) return 0x7fff;
  const float magnitude = std::fabs(x);
  if (magnitude >= 65520.0f) return sign | 0x7c00;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int grid = std::max(exponent - 11, -24);  // exponent of the last place
  const auto places = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -grid)));
  if (places == 0) return sign;
  // A carry into the next exponent falls into place by itself.
  return static_cast<std::uint16_t>(
      sign + (grid == -24 && places < 1024 ? places : (grid + 24) * 1024 + places));
}

}  // namespace taper::gpuemu
