// SPDX-License-Identifier: Apache-2.0
//
// Sums of products by the tensor cores of NVIDIA GPUs. The model of a step is that of Khattak and
// Mikaitis (arXiv 2512.07004) and MMA-Sim (arXiv 2511.10909): products of bf16 values are exact;
// all terms are aligned to the largest exponent, cut toward zero to so many fraction bits, and
// added; the sum is rounded toward zero.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/Bf16.hpp"

namespace taper::canonical {

// What a step adds to the accumulator at once.
struct TensorCore {
  int products;
  int fraction_bits;
};
constexpr TensorCore tensor_core(int architecture) {
  return architecture >= 90 ? TensorCore{16, 25} : TensorCore{8, 24};
}

namespace detail {

// significand * 2^exponent; terms are aligned by `alignment`.
struct Term {
  std::int64_t significand = 0;
  int exponent = 0, alignment = 0;
};

inline Term term_of(bf16 a, bf16 b) {
  const auto significand = [](int bits) {
    return (bits & 0x7f80) == 0 ? bits & 127 : 128 | (bits & 127);
  };
  const auto exponent = [](int bits) { return std::max(bits >> 7 & 255, 1) - 127; };
  const std::int64_t s = std::int64_t{significand(a.bits)} * significand(b.bits);
  const int e = exponent(a.bits) + exponent(b.bits);
  return {((a.bits ^ b.bits) & 0x8000) != 0 ? -s : s, e - 14, e};
}

inline Term term_of(float c) {
  const auto bits = std::bit_cast<std::uint32_t>(c);
  const int exponent = static_cast<int>(bits >> 23 & 255);
  const std::int64_t s = (exponent == 0 ? 0 : 0x800000) | (bits & 0x7fffff);
  const int e = std::max(exponent, 1) - 127;
  return {bits >> 31 != 0 ? -s : s, e - 23, e};
}

// sum * 2^exponent toward zero, also on the grid of subnormal results.
inline float cut_to_float(std::int64_t sum, int exponent) {
  if (sum == 0) return 0.0f;
  const auto magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  const int width = 64 - std::countl_zero(magnitude);
  const int last = std::max(exponent + width - 24, -149);  // exponent of the result's last place
  const int shift = last - exponent;
  const std::uint64_t kept =
      shift > 0 ? (shift < 64 ? magnitude >> shift : 0) : magnitude << -shift;
  const double value = std::ldexp(static_cast<double>(kept), last);
  const float result = value > std::numeric_limits<float>::max()
                           ? std::numeric_limits<float>::infinity()
                           : static_cast<float>(value);
  return sum < 0 ? -result : result;
}

// Infinities and NaN go the way of IEEE 754. Whether there are any; if so, *result is set.
inline bool is_special(const bf16* a, const bf16* b, int n, float c, float* result) {
  bool has_nan = c != c;
  float infinite = std::isinf(c) ? c : 0.0f;
  for (int k = 0; k < n; ++k) {
    if ((a[k].bits & 0x7f80) != 0x7f80 && (b[k].bits & 0x7f80) != 0x7f80) continue;
    const float p = to_float(a[k]) * to_float(b[k]);
    if (p != p || (infinite != 0.0f && std::signbit(p) != std::signbit(infinite))) has_nan = true;
    infinite = p;
  }
  *result = has_nan ? std::bit_cast<float>(0x7fffffffu) : infinite;
  return has_nan || infinite != 0.0f;
}

}  // namespace detail

// c + the sum of a[k] b[k] in one step; n <= 16.
inline float tensor_step(const bf16* a, const bf16* b, int n, float c, int fraction_bits) {
  float special = 0.0f;
  if (detail::is_special(a, b, n, c, &special)) return special;
  detail::Term terms[17];
  for (int k = 0; k < n; ++k) terms[k] = detail::term_of(a[k], b[k]);
  terms[n] = detail::term_of(c);
  constexpr int kNone = std::numeric_limits<int>::min();
  int top = kNone;
  for (int k = 0; k <= n; ++k)
    if (terms[k].significand != 0) top = std::max(top, terms[k].alignment);
  if (top == kNone) return 0.0f;
  const int grid = top - fraction_bits;  // exponent of the last bit that is kept
  std::int64_t sum = 0;
  for (int k = 0; k <= n; ++k) {
    const int shift = terms[k].exponent - grid;
    if (shift >= 0)
      sum += terms[k].significand * (std::int64_t{1} << shift);
    else if (shift > -40)
      sum += terms[k].significand / (std::int64_t{1} << -shift);  // cuts toward zero
  }
  return detail::cut_to_float(sum, grid);
}

// The same over any number of products, in ascending steps.
inline float tensor_chain(const bf16* a, const bf16* b, int n, float c, const TensorCore& core) {
  for (int k = 0; k < n; k += core.products)
    c = tensor_step(a + k, b + k, std::min(core.products, n - k), c, core.fraction_bits);
  return c;
}

// The chains of Arithmetic::kBf16, in place of FmaChain (product.hpp): both operands are rounded to
// bf16, the chain begins at zero, and its start is added at the end.
struct TensorChain {
  TensorCore core;

  float operator()(float start, const float* a, std::int64_t a_step, const float* b,
                   std::int64_t b_step, int n) const {
    std::vector<bf16> left, right;
    for (int k = 0; k < n; ++k) {
      left.push_back(to_bf16(a[k * a_step]));
      right.push_back(to_bf16(b[k * b_step]));
    }
    return start + tensor_chain(left.data(), right.data(), n, 0.0f, core);
  }
};

}  // namespace taper::canonical
