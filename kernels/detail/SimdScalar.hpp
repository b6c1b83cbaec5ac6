// SPDX-License-Identifier: Apache-2.0
//
// Sixteen float lanes in plain C++, for any processor.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/Bf16.hpp"
#include "base/Fixed.hpp"
#include "kernels/Instructions.hpp"

namespace taper::detail {

struct Scalar {
  struct V {
    float lane[16];
  };
  struct Pairs {
    V first, second;
  };
  static constexpr InstructionSet kSet = InstructionSet::kScalar;
  static constexpr int kProductVectors = 1;
  static constexpr int kProductRows = 2;
  static constexpr int kBf16Vectors = 1;
  static constexpr int kBf16Rows = 2;
  static constexpr int kDotVectors = 1;
  static constexpr int kDotRows = 2;

  template <class F>
  static V make(F f) {
    V v;
    for (int i = 0; i < 16; ++i) v.lane[i] = f(i);
    return v;
  }

  static V zero() { return set1(0.0f); }
  static V set1(float x) {
    return make([&](int) { return x; });
  }
  static V load(const float* p) {
    return make([&](int i) { return p[i]; });
  }
  static V load(const bf16* p) {
    return make([&](int i) { return to_float(p[i]); });
  }
  // Sixteen pairs.
  static Pairs load(const Bf16Pair* p) {
    return {make([&](int i) { return to_float(p[i].first); }),
            make([&](int i) { return to_float(p[i].second); })};
  }
  static Pairs set1(Bf16Pair x) { return {set1(to_float(x.first)), set1(to_float(x.second))}; }
  // As to_operand().
  static V to_operands(V x) {
    return make([&](int i) { return to_float(to_operand(x.lane[i])); });
  }
  // 32 values one after another, and 16 pairs.
  static void store_rounded(bf16* p, V lower, V upper) {
    for (int i = 0; i < 16; ++i) {
      p[i] = to_operand(lower.lane[i]);
      p[i + 16] = to_operand(upper.lane[i]);
    }
  }
  static void store_rounded(Bf16Pair* p, V first, V second) {
    for (int i = 0; i < 16; ++i) p[i] = {to_operand(first.lane[i]), to_operand(second.lane[i])};
  }
  static void store(float* p, V x) { store_n(p, x, 16); }
  static V load_n(const float* p, int n) {
    return make([&](int i) { return i < n ? p[i] : 0.0f; });
  }
  static void store_n(float* p, V x, int n) {
    for (int i = 0; i < n; ++i) p[i] = x.lane[i];
  }
  static V keep_first(V x, int n, V other) {
    return make([&](int i) { return i < n ? x.lane[i] : other.lane[i]; });
  }

  static V add(V a, V b) {
    return make([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  static V sub(V a, V b) {
    return make([&](int i) { return a.lane[i] - b.lane[i]; });
  }
  static V mul(V a, V b) {
    return make([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  static V div(V a, V b) {
    return make([&](int i) { return a.lane[i] / b.lane[i]; });
  }
  static V fma(V a, V b, V c) {
    return make([&](int i) { return __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]); });
  }
  // As canonical/dot_chain.hpp.
  static V fma(const Pairs& a, const Pairs& b, V c) {
    return fma(a.first, b.first, fma(a.second, b.second, c));
  }
  static V sqrt(V a) {
    return make([&](int i) { return __builtin_sqrtf(a.lane[i]); });
  }
  static V max(V a, V b) {
    return make([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static V min(V a, V b) {
    return make([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static V round(V a) {
    return make([&](int i) { return __builtin_nearbyintf(a.lane[i]); });
  }
  static V scale(V a, V n) {
    return make([&](int i) {
      const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(n.lane[i]) + 127)
                            << 23;
      return a.lane[i] * __builtin_bit_cast(float, exponent);
    });
  }
  static V where_ge(V x, V y, V a, V b) {
    return make([&](int i) { return x.lane[i] >= y.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static std::uint64_t sum_rounded(V x) {
    std::uint64_t sum = 0;
    for (float lane : x.lane) sum += static_cast<std::uint64_t>(__builtin_llrintf(lane));
    return sum;
  }
  // Adds the first n lanes to sums.
  static void add_fixed(Fixed* sums, V x, int n) {
    for (int i = 0; i < n; ++i) sums[i] += to_fixed(x.lane[i]);
  }
};

}  // namespace taper::detail
