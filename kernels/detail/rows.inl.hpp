// SPDX-License-Identifier: Apache-2.0
//
// Operations on single rows: norm, activation, rope, statistics of logits, optimizer.
#pragma once

#include <cstdint>

#include "kernels/detail/Lanes.hpp"
#include "kernels/detail/Rows.hpp"

namespace taper::detail {

static inline int lanes_left(std::int64_t n, std::int64_t i) {
  return n - i < 16 ? static_cast<int>(n - i) : 16;
}

// y = (x * inv) * gain with inv = 1 / sqrt(mean(x^2) + eps). Returns inv.
template <class S>
float rmsnorm_row(float* y, const float* x, const float* gain, int n, float eps) {
  using V = typename S::V;
  V squares = S::zero();
  for (int i = 0; i < n; i += 16) {
    const V v = S::load_n(x + i, lanes_left(n, i));
    squares = S::fma(v, v, squares);
  }
  const float mean = sum_lanes<S>(squares) / static_cast<float>(n);
  const float inv = 1.0f / __builtin_sqrtf(mean + eps);
  for (int i = 0; i < n; i += 16) {
    const int lanes = lanes_left(n, i);
    S::store_n(y + i,
               S::mul(S::mul(S::load_n(x + i, lanes), S::set1(inv)), S::load_n(gain + i, lanes)),
               lanes);
  }
  return inv;
}

// dx (+)= inv * (dy * gain) - x * inv^3 / n * sum(dy * gain * x)
template <class S>
void rmsnorm_backward_row(float* dx, const float* dy, const float* x, const float* gain, int n,
                          float inv, bool accumulate) {
  using V = typename S::V;
  V product = S::zero();
  for (int i = 0; i < n; i += 16) {
    const int lanes = lanes_left(n, i);
    const V upstream = S::mul(S::load_n(dy + i, lanes), S::load_n(gain + i, lanes));
    product = S::fma(upstream, S::load_n(x + i, lanes), product);
  }
  const V factor = S::set1(-(sum_lanes<S>(product) * inv * inv * inv / static_cast<float>(n)));
  for (int i = 0; i < n; i += 16) {
    const int lanes = lanes_left(n, i);
    const V upstream = S::mul(S::load_n(dy + i, lanes), S::load_n(gain + i, lanes));
    const V direct = S::fma(S::load_n(x + i, lanes), factor, S::mul(upstream, S::set1(inv)));
    S::store_n(dx + i, accumulate ? S::add(S::load_n(dx + i, lanes), direct) : direct, lanes);
  }
}

// sum[c] += sum over rows (ascending), for up to 16 columns.
template <class S>
void column_sums(float* sum, const ColumnArgs& args, int columns) {
  typename S::V acc = S::load_n(sum, columns);
  for (int r = 0; r < args.rows; ++r) {
    typename S::V value = S::load_n(args.a + r * args.stride, columns);
    if (args.b != nullptr) value = S::mul(value, S::load_n(args.b + r * args.stride, columns));
    if (args.scale != nullptr) value = S::mul(value, S::set1(args.scale[r * args.scale_stride]));
    acc = S::add(acc, value);
  }
  S::store_n(sum, acc, columns);
}

// Rotates the pairs (i, i + n/2) of one head by +angle (direction 1) or -angle (direction -1).
template <class S>
void rope_head(float* y, const float* x, const float* cosine, const float* sine, int head_dim,
               float direction) {
  using V = typename S::V;
  const int half = head_dim / 2;
  const V sign = S::set1(direction);
  for (int i = 0; i < half; i += 16) {
    const int lanes = lanes_left(half, i);
    const V a = S::load_n(x + i, lanes), b = S::load_n(x + half + i, lanes);
    const V c = S::load_n(cosine + i, lanes), s = S::mul(sign, S::load_n(sine + i, lanes));
    const V ya = S::sub(S::mul(a, c), S::mul(b, s));
    const V yb = S::add(S::mul(b, c), S::mul(a, s));
    S::store_n(y + i, ya, lanes);
    S::store_n(y + half + i, yb, lanes);
  }
}

// y = silu(gate) * up
template <class S>
void swiglu_row(float* y, const float* gate, const float* up, int n) {
  using V = typename S::V;
  for (int i = 0; i < n; i += 16) {
    const int lanes = lanes_left(n, i);
    const V g = S::load_n(gate + i, lanes);
    const V silu = S::div(g, S::add(S::set1(1.0f), exp<S>(S::sub(S::zero(), g))));
    S::store_n(y + i, S::mul(silu, S::load_n(up + i, lanes)), lanes);
  }
}

// dgate, dup from dy; may stand in the memory of gate and up.
template <class S>
void swiglu_backward_row(float* dgate, float* dup, const float* dy, const float* gate,
                         const float* up, int n) {
  using V = typename S::V;
  const V one = S::set1(1.0f);
  for (int i = 0; i < n; i += 16) {
    const int lanes = lanes_left(n, i);
    const V g = S::load_n(gate + i, lanes), u = S::load_n(up + i, lanes),
            d = S::load_n(dy + i, lanes);
    const V sigmoid = S::div(one, S::add(one, exp<S>(S::sub(S::zero(), g))));
    const V slope = S::mul(sigmoid, S::fma(g, S::sub(one, sigmoid), one));
    S::store_n(dgate + i, S::mul(S::mul(d, u), slope), lanes);
    S::store_n(dup + i, S::mul(d, S::mul(g, sigmoid)), lanes);
  }
}

template <class S>
void add_row(float* y, const float* a, const float* b, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += 16) {
    const int lanes = lanes_left(n, i);
    S::store_n(y + i, S::add(S::load_n(a + i, lanes), S::load_n(b + i, lanes)), lanes);
  }
}

// x /= divisor; returns the maximum.
template <class S>
float scale_and_max_row(float* x, int n, float divisor) {
  using V = typename S::V;
  const V lowest = S::set1(-__builtin_inff());
  V best = lowest;
  for (int i = 0; i < n; i += 16) {
    const int lanes = lanes_left(n, i);
    const V v = S::div(S::load_n(x + i, lanes), S::set1(divisor));
    S::store_n(x + i, v, lanes);
    best = S::max(best, S::keep_first(v, lanes, lowest));
  }
  return max_lanes<S>(best);
}

// The integer mass of a logit: round(2^40 * exp(l - max)). Sums of masses are exact in any order.
template <class S>
inline typename S::V scaled_exp(const float* logits, float max, int lanes) {
  const typename S::V e = exp<S>(S::sub(S::load_n(logits, lanes), S::set1(max)));
  return S::keep_first(S::mul(e, S::set1(kMassOne)), lanes, S::zero());
}

// Negative if a logit is NaN: rounded NaNs would cancel in the integer sum.
template <class S>
std::int64_t mass_row(const float* logits, int n, float max) {
  std::uint64_t sum = 0;
  typename S::V check = S::zero();
  for (int i = 0; i < n; i += 16) {
    const typename S::V masses = scaled_exp<S>(logits + i, max, lanes_left(n, i));
    sum += S::sum_rounded(masses);
    check = S::add(check, masses);
  }
  const float total = sum_lanes<S>(check);
  return total == total ? static_cast<std::int64_t>(sum) : -1;
}

template <class S>
void masses_row(std::int64_t* out, const float* logits, int n, float max) {
  for (int i = 0; i < n; i += 16) {
    float lanes[16];
    S::store(lanes, scaled_exp<S>(logits + i, max, lanes_left(n, i)));
    for (int j = 0; j < lanes_left(n, i); ++j) out[i + j] = __builtin_llrintf(lanes[j]);
  }
}

// The first index at which the running sum of masses passes `target`; n if it never does.
template <class S>
int find_mass_row(const float* logits, int n, float max, std::int64_t target) {
  for (int i = 0; i < n; i += 16) {
    const typename S::V masses = scaled_exp<S>(logits + i, max, lanes_left(n, i));
    const auto sum = static_cast<std::int64_t>(S::sum_rounded(masses));
    if (target < sum) {
      float lanes[16];
      S::store(lanes, masses);
      for (int j = 0; j < lanes_left(n, i); ++j) {
        target -= __builtin_llrintf(lanes[j]);
        if (target < 0) return i + j;
      }
    }
    target -= sum;
  }
  return n;
}

// Sum over j of exp(l_j - max) * (l_j - max), for the entropy: blocks of 16 lanes, rounded to
// integers like masses.
template <class S>
std::int64_t weighted_logit_row(const float* logits, int n, float max) {
  using V = typename S::V;
  std::int64_t sum = 0;
  for (int i = 0; i < n; i += 16) {
    const int lanes = lanes_left(n, i);
    // A logit of -inf (an id beyond the tokenizer) has no weight; the bound keeps 0 * inf out of
    // the sum.
    const V centred = S::max(S::set1(-200.0f), S::sub(S::load_n(logits + i, lanes), S::set1(max)));
    const float block =
        sum_lanes<S>(S::keep_first(S::mul(exp<S>(centred), centred), lanes, S::zero()));
    sum += __builtin_llrintf(block * kMassOne);
  }
  return sum;
}

// In place: l -> d(loss)/d(raw logit) where the loss has slope c_logp by log-prob of the target and
// c_entropy by entropy, p = exp(l - lse). The one-hot part of the target is added by the caller.
template <class S>
void logit_gradient_row(float* logits, int n, float lse, float entropy, float c_logp,
                        float c_entropy, float inverse_temperature) {
  using V = typename S::V;
  for (int i = 0; i < n; i += 16) {
    const int lanes = lanes_left(n, i);
    const V centred = S::max(S::set1(-200.0f), S::sub(S::load_n(logits + i, lanes), S::set1(lse)));
    const V p = exp<S>(centred);
    // dH/dl = -p (log p + H)
    const V slope =
        S::fma(S::set1(-c_entropy), S::add(centred, S::set1(entropy)), S::set1(-c_logp));
    S::store_n(logits + i, S::mul(S::mul(p, slope), S::set1(inverse_temperature)), lanes);
  }
}

// AdamW with decoupled decay; see AdamWStep for the scalars.
template <class S>
void adamw_row(float* p, float* m, float* v, const float* g, std::int64_t n,
               const AdamWStep& step) {
  using V = typename S::V;
  for (std::int64_t i = 0; i < n; i += 16) {
    const int lanes = lanes_left(n, i);
    const V grad = S::mul(S::load_n(g + i, lanes), S::set1(step.grad_scale));
    const V first = S::add(S::mul(S::set1(step.beta1), S::load_n(m + i, lanes)),
                           S::mul(S::set1(step.rest1), grad));
    const V second = S::add(S::mul(S::set1(step.beta2), S::load_n(v + i, lanes)),
                            S::mul(S::mul(S::set1(step.rest2), grad), grad));
    const V decayed = S::mul(S::load_n(p + i, lanes), S::set1(1.0f - step.lr * step.weight_decay));
    const V root =
        S::add(S::div(S::sqrt(second), S::set1(step.sqrt_correction2)), S::set1(step.eps));
    S::store_n(p + i,
               S::sub(decayed, S::mul(S::set1(step.lr / step.correction1), S::div(first, root))),
               lanes);
    S::store_n(m + i, first, lanes);
    S::store_n(v + i, second, lanes);
  }
}

// Sum of squares: float inside blocks of 16 lanes x 64, double over blocks.
template <class S>
double sum_squares_row(const float* x, std::int64_t n) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < n;) {
    typename S::V acc = S::zero();
    for (const std::int64_t stop = i + 1024; i < n && i < stop; i += 16) {
      const typename S::V v = S::load_n(x + i, lanes_left(n, i));
      acc = S::fma(v, v, acc);
    }
    sum += sum_lanes<S>(acc);
  }
  return sum;
}

}  // namespace taper::detail
