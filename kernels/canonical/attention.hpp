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
#include "kernels/canonical/tensor_core.hpp"

namespace taper::canonical {

// Keys per softmax, by position within the sequence.
constexpr int chunk_keys(const FmaChain&) {
  return 256;
}
constexpr int chunk_keys(const TensorChain&) {
  return 128;
}

// The sum of n weights; on tensor cores, where they are rounded, it is their product with ones.
inline float sum_weights(const FmaChain&, const float* e, int n) {
  return lane_sum(e, n);
}
inline float sum_weights(const TensorChain& chain, const float* e, int n) {
  const float one = 1.0f;
  return chain(0.0f, e, 1, &one, 0, n);
}

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
template <class Chain = FmaChain>
Softmax attend(float* out, const float* q, HeadRows k, HeadRows v, int visible, int head_dim,
               const Chain& chain = {}) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  Softmax total{};
  for (int base = 0; base < visible; base += chunk_keys(chain)) {
    const int n = std::min(chunk_keys(chain), visible - base);
    std::vector<float> e(n), values(head_dim);
    Softmax chunk{-std::numeric_limits<float>::infinity(), 0.0f};
    for (int j = 0; j < n; ++j) {
      e[j] = chain(0.0f, q, 1, k[base + j], 1, head_dim) * scale;
      chunk.max = std::max(chunk.max, e[j]);
    }
    for (float& value : e) value = exp(value - chunk.max);
    chunk.sum = sum_weights(chain, e.data(), n);
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

// A query and what the forward pass left of it.
struct SeenQuery {
  const float *q, *out, *dout;
  Softmax softmax;
  int visible;  // keys, the first ones
};

// Gradients of one KV head: dq (queries, head_dim), dk and dv (keys, head_dim). Queries stand in
// ascending order of tokens and, within a token, of heads; a key's sums go over all of them, with a
// weight of zero where it is not seen.
struct HeadGradients {
  std::vector<float> dq, dk, dv;
};
template <class Chain = FmaChain>
HeadGradients attend_backward(const std::vector<SeenQuery>& queries, HeadRows k, HeadRows v,
                              int keys, int head_dim, const Chain& chain = {}) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  const auto n = static_cast<int>(queries.size());
  std::vector<float> weight(std::size_t(n) * keys), dscore(weight.size()), q, dout;
  HeadGradients g;
  for (int p = 0; p < n; ++p) {
    const SeenQuery& query = queries[p];
    q.insert(q.end(), query.q, query.q + head_dim);
    dout.insert(dout.end(), query.dout, query.dout + head_dim);
    const float dot = lane_dot(query.out, query.dout, head_dim);
    const float inverse_sum = 1.0f / query.softmax.sum;
    float *weights = &weight[std::size_t(p) * keys], *dscores = &dscore[std::size_t(p) * keys];
    for (int j = 0; j < query.visible; ++j) {
      const float score = chain(0.0f, query.q, 1, k[j], 1, head_dim) * scale;
      weights[j] = exp(score - query.softmax.max) * inverse_sum;
      const float dweight = chain(0.0f, query.dout, 1, v[j], 1, head_dim);
      dscores[j] = weights[j] * (dweight - dot) * scale;
    }
    for (int d = 0; d < head_dim; ++d)
      g.dq.push_back(chain(0.0f, dscores, 1, k[0] + d, k.stride, query.visible));
  }
  for (int j = 0; j < keys; ++j)
    for (int d = 0; d < head_dim; ++d) {
      g.dk.push_back(chain(0.0f, &dscore[j], keys, &q[d], head_dim, n));
      g.dv.push_back(chain(0.0f, &weight[j], keys, &dout[d], head_dim, n));
    }
  return g;
}

}  // namespace taper::canonical
