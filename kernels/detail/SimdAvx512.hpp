// SPDX-License-Identifier: Apache-2.0
//
// Sixteen float lanes on AVX-512 (F, BW, DQ, VL). All instruction sets offer the same sixteen
// lanes, so that sums over lanes have the same bits everywhere. Included only by translation units
// compiled for this instruction set.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstdint>

#include "base/Bf16.hpp"
#include "base/Fixed.hpp"
#include "kernels/Instructions.hpp"

namespace taper::detail {

struct Avx512 {
  using V = __m512;
  struct Pairs {
    V first, second;
  };
  static constexpr InstructionSet kSet = InstructionSet::kAvx512;
  static constexpr int kProductVectors = 4;  // vectors of columns in registers in a panel product
  static constexpr int kProductRows = 6;
  static constexpr int kBf16Vectors = 2;  // the same in Arithmetic::kBf16, with twice the chains
  static constexpr int kBf16Rows = 6;
  static constexpr int kDotVectors = 2;  // the same in Arithmetic::kBf16Dot
  static constexpr int kDotRows = 6;

  static V zero() { return _mm512_setzero_ps(); }
  static V set1(float x) { return _mm512_set1_ps(x); }
  static V load(const float* p) { return _mm512_loadu_ps(p); }
  static V load(const bf16* p) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
  }
  // Sixteen pairs.
  static Pairs load(const Bf16Pair* p) { return taken_apart(_mm512_loadu_si512(p)); }
  static Pairs set1(Bf16Pair x) {
    return taken_apart(_mm512_set1_epi32(std::bit_cast<std::int32_t>(x)));
  }
  // As to_operand().
  static V to_operands(V x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __m512i nan = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __mmask16 is_tiny = _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(0x7f800000));
    const __m512i rounded = _mm512_mask_and_epi32(_mm512_mask_blend_epi32(is_nan, up, nan), is_tiny,
                                                  bits, _mm512_set1_epi32(INT32_MIN));
    return _mm512_castsi512_ps(_mm512_and_si512(rounded, _mm512_set1_epi32(-65536)));
  }
  // 32 values one after another, and 16 pairs.
  static void store_rounded(bf16* p, V lower, V upper) {
    const auto store_half = [](bf16* to, V x) {
      const __m512i bits = _mm512_srli_epi32(_mm512_castps_si512(to_operands(x)), 16);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(bits));
    };
    store_half(p, lower);
    store_half(p + 16, upper);
  }
  static void store_rounded(Bf16Pair* p, V first, V second) {
    const __m512i low = _mm512_srli_epi32(_mm512_castps_si512(to_operands(first)), 16);
    _mm512_storeu_si512(p, _mm512_or_si512(low, _mm512_castps_si512(to_operands(second))));
  }
  static void store(float* p, V x) { _mm512_storeu_ps(p, x); }
  static __mmask16 first(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
  static V load_n(const float* p, int n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static void store_n(float* p, V x, int n) { _mm512_mask_storeu_ps(p, first(n), x); }
  // x in the first n lanes, other beyond; 0 <= n <= 16.
  static V keep_first(V x, int n, V other) { return _mm512_mask_blend_ps(first(n), other, x); }

  static V add(V a, V b) { return _mm512_add_ps(a, b); }
  static V sub(V a, V b) { return _mm512_sub_ps(a, b); }
  static V mul(V a, V b) { return _mm512_mul_ps(a, b); }
  static V div(V a, V b) { return _mm512_div_ps(a, b); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  // As canonical/dot_chain.hpp.
  static V fma(Pairs a, Pairs b, V c) { return fma(a.first, b.first, fma(a.second, b.second, c)); }
  static V sqrt(V a) { return _mm512_sqrt_ps(a); }
  // Second operand where either is NaN.
  static V max(V a, V b) { return _mm512_max_ps(a, b); }
  static V min(V a, V b) { return _mm512_min_ps(a, b); }
  // To the nearest integer, ties to even.
  static V round(V a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  // a * 2^n for integer-valued n in [-126, 127].
  static V scale(V a, V n) {
    const __m512i bits =
        _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23);
    return _mm512_mul_ps(a, _mm512_castsi512_ps(bits));
  }
  // a where x >= y, else b.
  static V where_ge(V x, V y, V a, V b) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_GE_OQ), b, a);
  }
  // Sum over lanes of the integers nearest to each lane (ties to even), modulo 2^64: NaNs are
  // rounded, too.
  static std::uint64_t sum_rounded(V x) {
    const __m512i low = _mm512_cvtps_epi64(_mm512_castps512_ps256(x));
    const __m512i high = _mm512_cvtps_epi64(_mm512_extractf32x8_ps(x, 1));
    const __m512i eight = _mm512_add_epi64(low, high);
    const __m256i four =
        _mm256_add_epi64(_mm512_castsi512_si256(eight), _mm512_extracti64x4_epi64(eight, 1));
    const __m128i two =
        _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
    return static_cast<std::uint64_t>(
        _mm_cvtsi128_si64(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two))));
  }
  // Adds the first n lanes to sums.
  static void add_fixed(Fixed* sums, V x, int n) {
    const V units = _mm512_mul_ps(x, set1(kFixedOne));
    const __mmask16 valid = _mm512_cmp_ps_mask(_mm512_abs_ps(units), set1(0x1p61f), _CMP_LT_OQ);
    const __mmask16 wanted = first(n);
    add_eight(sums, _mm512_castps512_ps256(units), valid, wanted);
    add_eight(sums + 8, _mm512_extractf32x8_ps(units, 1), valid >> 8, wanted >> 8);
  }

 private:
  static Pairs taken_apart(__m512i pairs) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)),
            _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(-65536)))};
  }
  static void add_eight(Fixed* sums, __m256 units, unsigned valid, unsigned wanted) {
    const __m512i none = _mm512_set1_epi64(kNoFixed.units);
    const __m512i limit = _mm512_set1_epi64(kFixedLimit);
    const auto mask = static_cast<__mmask8>(wanted);
    const __m512i term = _mm512_mask_cvtps_epi64(none, static_cast<__mmask8>(valid), units);
    const __m512i sum = _mm512_add_epi64(_mm512_maskz_loadu_epi64(mask, sums), term);
    const __mmask8 fits = _mm512_cmplt_epi64_mask(_mm512_abs_epi64(sum), limit);
    _mm512_mask_storeu_epi64(sums, mask, _mm512_mask_blend_epi64(fits, none, sum));
  }
};

}  // namespace taper::detail
