// SPDX-License-Identifier: Apache-2.0
//
// By integer operations only: right also where denormals are flushed to zero.
#pragma once

#include <bit>
#include <cstdint>

namespace taper::detail {

// IEEE 754 binary16; exact.
inline float float_from_f16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t fraction = half & 0x3ffu;
  if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (fraction << 13));
  if (fraction == 0) return std::bit_cast<float>(sign);
  // A denormal half is fraction * 2^-24: normal in single precision.
  const auto shift = static_cast<std::uint32_t>(std::countl_zero(fraction)) - 21u;
  return std::bit_cast<float>(sign | ((113u - shift) << 23) |
                              (((fraction << shift) & 0x3ffu) << 13));
}

}  // namespace taper::detail
