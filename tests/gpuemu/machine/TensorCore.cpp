// SPDX-License-Identifier: Apache-2.0
#include "gpuemu/machine/TensorCore.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace taper::gpuemu {

float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t float_to_bf16(float x) {
  if (x != x) return 0x7fff;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
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

namespace {

// +-significand x 2^exponent.
struct Term {
  std::int64_t significand = 0;
  int exponent = 0;   // of the last bit
  int alignment = 0;  // the exponent by which terms are aligned
};

Term product(std::uint16_t a, std::uint16_t b) {
  const auto parts = [](std::uint16_t x) {
    const int exponent = x >> 7 & 255;
    const int significand = exponent == 0 ? x & 127 : 128 | (x & 127);
    return std::pair(significand, std::max(exponent, 1) - 127);
  };
  const auto [sa, ea] = parts(a);
  const auto [sb, eb] = parts(b);
  const std::int64_t s = std::int64_t{sa} * sb;
  return {((a ^ b) & 0x8000) != 0 ? -s : s, ea + eb - 14, ea + eb};
}

Term addend(float c) {
  const auto bits = std::bit_cast<std::uint32_t>(c);
  const int exponent = static_cast<int>(bits >> 23 & 255);
  const std::int64_t s = exponent == 0 ? bits & 0x7fffff : 0x800000 | (bits & 0x7fffff);
  const int e = std::max(exponent, 1) - 127;
  return {bits >> 31 != 0 ? -s : s, e - 23, e};
}

// Toward zero, also on the grid of subnormal results.
float rounded(std::int64_t sum, int exponent) {
  if (sum == 0) return 0.0f;
  const auto magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  const int width = 64 - std::countl_zero(magnitude);
  const int last = std::max(exponent + width - 24, -149);  // exponent of the result's last place
  const int shift = last - exponent;
  const std::uint64_t kept =
      shift > 0 ? (shift < 64 ? magnitude >> shift : 0) : magnitude << -shift;
  const double value = std::ldexp(static_cast<double>(kept), last);
  const double limit = std::numeric_limits<float>::max();
  const float result =
      value > limit ? std::numeric_limits<float>::infinity() : static_cast<float>(value);
  return sum < 0 ? -result : result;
}

}  // namespace

float dot_step(std::span<const std::uint16_t> a, std::span<const std::uint16_t> b, float c,
               int fraction_bits) {
  bool has_nan = c != c;
  double infinite = std::isinf(c) ? c : 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const float x = bf16_to_float(a[k]), y = bf16_to_float(b[k]);
    if (std::isfinite(x) && std::isfinite(y)) continue;
    const float p = x * y;
    if (p != p || (infinite != 0.0 && std::signbit(p) != std::signbit(infinite))) has_nan = true;
    infinite = p;
  }
  if (has_nan) return std::bit_cast<float>(0x7fffffffu);
  if (infinite != 0.0) return static_cast<float>(infinite);

  Term terms[17];
  int n = 0, top = std::numeric_limits<int>::min();
  for (std::size_t k = 0; k < a.size(); ++k) terms[n++] = product(a[k], b[k]);
  terms[n++] = addend(c);
  for (int k = 0; k < n; ++k) {
    if (terms[k].significand != 0) top = std::max(top, terms[k].alignment);
  }
  if (top == std::numeric_limits<int>::min()) return 0.0f;
  const int grid = top - fraction_bits;  // exponent of the last bit that is kept
  std::int64_t sum = 0;
  for (int k = 0; k < n; ++k) {
    const int shift = terms[k].exponent - grid;
    const std::int64_t s = terms[k].significand;
    if (shift >= 0) {
      sum += s * (std::int64_t{1} << shift);
    } else if (shift > -40) {
      sum += s / (std::int64_t{1} << -shift);  // cuts toward zero
    }
  }
  return rounded(sum, grid);
}

float dot(std::span<const std::uint16_t> a, std::span<const std::uint16_t> b, float c,
          const DotModel& model) {
  const auto step = static_cast<std::size_t>(model.products);
  for (std::size_t k = 0; k < a.size(); k += step) {
    const std::size_t n = std::min(step, a.size() - k);
    c = dot_step(a.subspan(k, n), b.subspan(k, n), c, model.fraction_bits);
  }
  return c;
}

}  // namespace taper::gpuemu
