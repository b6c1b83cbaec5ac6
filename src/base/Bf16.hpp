// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace taper {

// A 16-bit brain float as it lies in memory. (Kokkos' own type is a 4-byte float on the host.)
struct bf16 {
  std::uint16_t bits;  // without a first value: arrays of it that are filled later cost nothing
};

// Two inputs of a product, side by side.
struct Bf16Pair {
  bf16 first, second;
};

// Exact.
constexpr float to_float(bf16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}
constexpr float to_float(float value) {
  return value;
}

// Round to nearest, ties to even, by integer operations: right for denormals also where they are
// flushed to zero. NaN stays NaN; what rounds beyond the largest number becomes infinity.
constexpr bf16 to_bf16(float value) {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>((u >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

// The same of an activation or a gradient as it enters a product: denormals count as zero there.
constexpr bf16 to_operand(float value) {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(value);
  if ((u & 0x7f800000u) == 0) return {static_cast<std::uint16_t>((u >> 16) & 0x8000u)};
  return to_bf16(value);
}

}  // namespace taper
