// SPDX-License-Identifier: Apache-2.0
//
// Dot products of AVX512-BF16 for products in Arithmetic::kBf16Dot.
#include <immintrin.h>

#include <bit>
#include <cstdint>

#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/SimdAvx512.hpp"
#include "kernels/detail/dot_product.inl.hpp"

namespace taper::detail {
namespace {

struct Avx512Bf16 : Avx512 {
  using Pairs = __m512bh;
  static constexpr int kDotVectors = 4;

  using Avx512::load, Avx512::set1, Avx512::fma;
  static Pairs load(const Bf16Pair* p) { return Pairs(_mm512_loadu_si512(p)); }
  static Pairs set1(Bf16Pair x) { return Pairs(_mm512_set1_epi32(std::bit_cast<std::int32_t>(x))); }
  static V fma(Pairs a, Pairs b, V c) { return _mm512_dpbf16_ps(c, a, b); }

  static void store_rounded(bf16* p, V lower, V upper) {
    _mm512_storeu_si512(p, __m512i(_mm512_cvtne2ps_pbh(upper, lower)));
  }
  static void store_rounded(Bf16Pair* p, V first, V second) {
    const __m512i side_by_side =  // of the first values in the lower half, and the second ones
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const auto halves = __m512i(_mm512_cvtne2ps_pbh(second, first));
    _mm512_storeu_si512(p, _mm512_permutexvar_epi16(side_by_side, halves));
  }
};

}  // namespace

extern const PairOps kAvx512Bf16PairOps;
const PairOps kAvx512Bf16PairOps = make_pair_ops<Avx512Bf16>();

}  // namespace taper::detail
