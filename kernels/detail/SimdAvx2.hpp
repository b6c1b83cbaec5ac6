// SPDX-License-Identifier: Apache-2.0
//
// Sixteen float lanes on AVX2 + FMA, as two registers. Included only by translation units compiled
// for them.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/Bf16.hpp"
#include "base/Fixed.hpp"
#include "kernels/Instructions.hpp"

namespace taper::detail {

struct Avx2 {
  struct V {
    __m256 lo, hi;
  };
  struct Pairs {
    V first, second;
  };
  static constexpr InstructionSet kSet = InstructionSet::kAvx2;
  static constexpr int kProductVectors = 1;
  static constexpr int kProductRows = 6;
  static constexpr int kBf16Vectors = 1;
  static constexpr int kBf16Rows = 3;
  static constexpr int kDotVectors = 1;
  static constexpr int kDotRows = 3;

  static V zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static V set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static V load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static V load(const bf16* p) {
    const auto widen = [](const bf16* q) {
      const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
      return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
    };
    return {widen(p), widen(p + 8)};
  }
  // Sixteen pairs.
  static Pairs load(const Bf16Pair* p) {
    const auto* pairs = reinterpret_cast<const __m256i*>(p);
    return taken_apart(_mm256_loadu_si256(pairs), _mm256_loadu_si256(pairs + 1));
  }
  static Pairs set1(Bf16Pair x) {
    const __m256i pairs = _mm256_set1_epi32(std::bit_cast<std::int32_t>(x));
    return taken_apart(pairs, pairs);
  }
  // As to_operand().
  static V to_operands(V x) {
    const auto half = [](__m256 v) {
      const __m256i bits = _mm256_castps_si256(v);
      const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
      const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
      const __m256i nan = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
      const __m256 is_nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
      const __m256 rounded =
          _mm256_blendv_ps(_mm256_castsi256_ps(up), _mm256_castsi256_ps(nan), is_nan);
      const __m256i exponent = _mm256_and_si256(bits, _mm256_set1_epi32(0x7f800000));
      const __m256i is_tiny = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
      const __m256i kept =  // of a denormal only the sign
          _mm256_sub_epi32(_mm256_set1_epi32(-65536),
                           _mm256_and_si256(is_tiny, _mm256_set1_epi32(0x7fff0000)));
      return _mm256_and_ps(rounded, _mm256_castsi256_ps(kept));
    };
    return {half(x.lo), half(x.hi)};
  }
  // 32 values one after another, and 16 pairs.
  static void store_rounded(bf16* p, V lower, V upper) {
    const auto store_half = [](bf16* to, V x) {
      const V rounded = to_operands(x);
      const __m256i packed =
          _mm256_packus_epi32(_mm256_srli_epi32(_mm256_castps_si256(rounded.lo), 16),
                              _mm256_srli_epi32(_mm256_castps_si256(rounded.hi), 16));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permute4x64_epi64(packed, 0xd8));
    };
    store_half(p, lower);
    store_half(p + 16, upper);
  }
  static void store_rounded(Bf16Pair* p, V first, V second) {
    const V a = to_operands(first), b = to_operands(second);
    const auto join = [](__m256 low, __m256 high) {
      return _mm256_or_si256(_mm256_srli_epi32(_mm256_castps_si256(low), 16),
                             _mm256_castps_si256(high));
    };
    auto* pairs = reinterpret_cast<__m256i*>(p);
    _mm256_storeu_si256(pairs, join(a.lo, b.lo));
    _mm256_storeu_si256(pairs + 1, join(a.hi, b.hi));
  }
  static void store(float* p, V x) {
    _mm256_storeu_ps(p, x.lo);
    _mm256_storeu_ps(p + 8, x.hi);
  }
  static __m256i first(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static V load_n(const float* p, int n) {
    return {_mm256_maskload_ps(p, first(n)), _mm256_maskload_ps(p + 8, first(n - 8))};
  }
  static void store_n(float* p, V x, int n) {
    _mm256_maskstore_ps(p, first(n), x.lo);
    _mm256_maskstore_ps(p + 8, first(n - 8), x.hi);
  }
  static V keep_first(V x, int n, V other) {
    return {_mm256_blendv_ps(other.lo, x.lo, _mm256_castsi256_ps(first(n))),
            _mm256_blendv_ps(other.hi, x.hi, _mm256_castsi256_ps(first(n - 8)))};
  }

  static V add(V a, V b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
  static V sub(V a, V b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
  static V mul(V a, V b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
  static V div(V a, V b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
  static V fma(V a, V b, V c) {
    return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
  }
  // As canonical/dot_chain.hpp.
  static V fma(Pairs a, Pairs b, V c) { return fma(a.first, b.first, fma(a.second, b.second, c)); }
  static V sqrt(V a) { return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }
  static V max(V a, V b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
  static V min(V a, V b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
  static V round(V a) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(a.lo, kNearest), _mm256_round_ps(a.hi, kNearest)};
  }
  static V scale(V a, V n) {
    const auto power = [](__m256 e) {
      return _mm256_castsi256_ps(
          _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(e), _mm256_set1_epi32(127)), 23));
    };
    return {_mm256_mul_ps(a.lo, power(n.lo)), _mm256_mul_ps(a.hi, power(n.hi))};
  }
  static V where_ge(V x, V y, V a, V b) {
    return {_mm256_blendv_ps(b.lo, a.lo, _mm256_cmp_ps(x.lo, y.lo, _CMP_GE_OQ)),
            _mm256_blendv_ps(b.hi, a.hi, _mm256_cmp_ps(x.hi, y.hi, _CMP_GE_OQ))};
  }
  static std::uint64_t sum_rounded(V x) {
    float lanes[16];
    store(lanes, x);
    std::uint64_t sum = 0;
    for (float lane : lanes) sum += static_cast<std::uint64_t>(__builtin_llrintf(lane));
    return sum;
  }
  // Adds the first n lanes to sums.
  static void add_fixed(Fixed* sums, V x, int n) {
    float lanes[16];
    store(lanes, x);
    for (int i = 0; i < n; ++i) sums[i] += to_fixed(lanes[i]);
  }

 private:
  static Pairs taken_apart(__m256i lo, __m256i hi) {
    const __m256i upper = _mm256_set1_epi32(-65536);
    return {{_mm256_castsi256_ps(_mm256_slli_epi32(lo, 16)),
             _mm256_castsi256_ps(_mm256_slli_epi32(hi, 16))},
            {_mm256_castsi256_ps(_mm256_and_si256(lo, upper)),
             _mm256_castsi256_ps(_mm256_and_si256(hi, upper))}};
  }
};

}  // namespace taper::detail
