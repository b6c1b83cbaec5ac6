// SPDX-License-Identifier: Apache-2.0
//
// Causal attention of single queries over the keys and values of their sequence, which stand in
// rows of activations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/canonical/lanes.hpp"
#include "kernels/canonical/product.hpp"

namespace taper::canonical {

inline constexpr int kChunk = 256;  // keys per softmax, by position within the sequence

// Vectors of one head: vector i starts at data + i * stride.
struct HeadRows {
  const float* data;
  std::int64_t stride;
  const float* operator[](int i) const { return data + i * stride; }
};

struct Softmax {
  float max, sum;
};

// out (head_dim) of one query that sees the first `visible` keys. Each chunk yields its own softmax
// and value sums; chunks are merged in ascending order.
inline Softmax attend(float* out, const float* q, HeadRows k, HeadRows v, int visible,
                      int head_dim) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  Softmax total{};
  for (int base = 0; base < visible; base += kChunk) {
    const int n = std::min(kChunk, visible - base);
    std::vector<float> e(n), values(head_dim);
    Softmax chunk{-std::numeric_limits<float>::infinity(), 0.0f};
    for (int j = 0; j < n; ++j) {
      e[j] = chain(0.0f, q, 1, k[base + j], 1, head_dim) * scale;
      chunk.max = std::max(chunk.max, e[j]);
    }
    for (float& value : e) value = exp(value - chunk.max);
    chunk.sum = lane_sum(e.data(), n);
    for (int d = 0; d < head_dim; ++d)
      values[d] = chain(0.0f, e.data(), 1, v[base] + d, v.stride, n);
    if (base == 0) {
      total = chunk;
      std::copy(values.begin(), values.end(), out);
      continue;
    }
    const float top = std::max(total.max, chunk.max);
    const float old_factor = exp(total.max - top), new_factor = exp(chunk.max - top);
    total = {top, total.sum * old_factor + chunk.sum * new_factor};
    for (int d = 0; d < head_dim; ++d) out[d] = out[d] * old_factor + values[d] * new_factor;
  }
  for (int d = 0; d < head_dim; ++d) out[d] /= total.sum;
  return total;
}

// One query's part of the gradients: dq is written; dk and dv (rows of head_dim, one per key) grow.
// Called with tokens ascending and, within a token, query heads ascending.
inline void attend_backward(float* dq, float* dk, float* dv, const float* dout, const float* out,
                            Softmax softmax, const float* q, HeadRows k, HeadRows v, int visible,
                            int head_dim) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  const float dot = lane_dot(out, dout, head_dim);
  const float inverse_sum = 1.0f / softmax.sum;
  std::fill(dq, dq + head_dim, 0.0f);
  for (int j = 0; j < visible; ++j) {
    const float score = chain(0.0f, q, 1, k[j], 1, head_dim) * scale;
    const float weight = exp(score - softmax.max) * inverse_sum;
    const float dweight = chain(0.0f, dout, 1, v[j], 1, head_dim);
    const float dscore = weight * (dweight - dot) * scale;
    for (int d = 0; d < head_dim; ++d) {
      dq[d] = std::fma(dscore, k[j][d], dq[d]);
      dk[j * head_dim + d] = std::fma(q[d], dscore, dk[j * head_dim + d]);
      dv[j * head_dim + d] = std::fma(weight, dout[d], dv[j * head_dim + d]);
    }
  }
}

}  // namespace taper::canonical
