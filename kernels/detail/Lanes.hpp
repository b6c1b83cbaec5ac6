// SPDX-License-Identifier: Apache-2.0
//
// What every vectorized operation is built of: sums over lanes in one fixed order and one
// exponential for all paths.
#pragma once

namespace taper::detail {

// ((0+8)+(4+12)) + ... : lanes i and i+8, then i and i+4, i+2, i+1.
template <class S>
inline float sum_lanes(typename S::V v) {
  float x[16];
  S::store(x, v);
  for (int width = 8; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) x[i] = x[i] + x[i + width];
  return x[0];
}

// NaN if any lane is NaN.
template <class S>
inline float max_lanes(typename S::V v) {
  float x[16];
  S::store(x, v);
  float best = x[0];
  for (int i = 1; i < 16; ++i)
    if (!(x[i] <= best)) best = (best != best) ? best : x[i];
  return best;
}

// e^x in float, about 1 ulp; 0 below -87.3, held at e^88 above 88, NaN for NaN. exp(0) is
// exactly 1. Cody-Waite reduction to |r| <= ln2/2, Taylor polynomial of degree 7 by Horner with
// fused multiply-adds. (A call would keep one exponential from starting before the last has ended.)
template <class S>
[[gnu::always_inline]] inline typename S::V exp(typename S::V x) {
  using V = typename S::V;
  const V lowest = S::set1(-87.3f);
  const V clamped = S::min(S::set1(88.0f), S::max(lowest, x));
  const V n = S::round(S::mul(clamped, S::set1(1.44269504088896341f)));
  V r = S::fma(n, S::set1(-0.693145751953125f), clamped);
  r = S::fma(n, S::set1(-1.42860682030941723212e-6f), r);
  V p = S::set1(1.0f / 5040.0f);
  p = S::fma(p, r, S::set1(1.0f / 720.0f));
  p = S::fma(p, r, S::set1(1.0f / 120.0f));
  p = S::fma(p, r, S::set1(1.0f / 24.0f));
  p = S::fma(p, r, S::set1(1.0f / 6.0f));
  p = S::fma(p, r, S::set1(0.5f));
  p = S::fma(p, r, S::set1(1.0f));
  p = S::fma(p, r, S::set1(1.0f));
  const V result = S::scale(p, n);
  // -inf and other far negative values give an exact zero; the comparison is false for NaN, which
  // stays.
  return S::where_ge(lowest, x, S::zero(), result);
}

// exp of one number, by the same code.
template <class S>
inline float exp_scalar(float x) {
  float out[16];
  S::store(out, exp<S>(S::set1(x)));
  return out[0];
}

}  // namespace taper::detail
