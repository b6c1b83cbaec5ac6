// SPDX-License-Identifier: Apache-2.0
//
// Causal attention with grouped queries for one sequence, no pages and no chunks.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/reference/Matrix.hpp"

namespace taper::reference {

// Query head h reads KV head (h + head_offset) / group.
struct AttentionHeads {
  int heads = 1, kv_heads = 1, group = 1, head_offset = 0, head_dim = 0;
  int kv_head(int head) const { return (head + head_offset) / group; }
};

// q (tokens, heads * head_dim), k and v (positions, kv_heads * head_dim). The queries stand at the
// last positions. Probabilities of the visible keys of one query.
inline Vector attention_weights(const AttentionHeads& s, const Matrix& q, const Matrix& k,
                                int token, int head) {
  const int visible = k.rows - q.rows + token + 1;
  Vector p(visible);
  double top = -INFINITY, sum = 0.0;
  for (int j = 0; j < visible; ++j) {
    for (int d = 0; d < s.head_dim; ++d)
      p[j] += q(token, head * s.head_dim + d) * k(j, s.kv_head(head) * s.head_dim + d);
    p[j] /= std::sqrt(static_cast<double>(s.head_dim));
    top = std::max(top, p[j]);
  }
  for (double& value : p) sum += value = std::exp(value - top);
  for (double& value : p) value /= sum;
  return p;
}

inline Matrix attention(const AttentionHeads& s, const Matrix& q, const Matrix& k,
                        const Matrix& v) {
  Matrix out(q.rows, q.columns);
  for (int t = 0; t < q.rows; ++t)
    for (int h = 0; h < s.heads; ++h) {
      const Vector p = attention_weights(s, q, k, t, h);
      for (std::size_t j = 0; j < p.size(); ++j)
        for (int d = 0; d < s.head_dim; ++d)
          out(t, h * s.head_dim + d) +=
              p[j] * v(static_cast<int>(j), s.kv_head(h) * s.head_dim + d);
    }
  return out;
}

struct AttentionGradient {
  Matrix dq, dk, dv;
};

inline AttentionGradient attention_backward(const AttentionHeads& s, const Matrix& dout,
                                            const Matrix& q, const Matrix& k, const Matrix& v) {
  AttentionGradient g{Matrix(q.rows, q.columns), Matrix(k.rows, k.columns),
                      Matrix(v.rows, v.columns)};
  const double scale = 1.0 / std::sqrt(static_cast<double>(s.head_dim));
  for (int t = 0; t < q.rows; ++t)
    for (int h = 0; h < s.heads; ++h) {
      const Vector p = attention_weights(s, q, k, t, h);
      const int q0 = h * s.head_dim, k0 = s.kv_head(h) * s.head_dim;
      Vector dp(p.size());
      double mean = 0.0;
      for (int j = 0; j < static_cast<int>(p.size()); ++j) {
        for (int d = 0; d < s.head_dim; ++d) dp[j] += dout(t, q0 + d) * v(j, k0 + d);
        mean += p[j] * dp[j];
      }
      for (int j = 0; j < static_cast<int>(p.size()); ++j) {
        const double dscore = p[j] * (dp[j] - mean) * scale;
        for (int d = 0; d < s.head_dim; ++d) {
          g.dq(t, q0 + d) += dscore * k(j, k0 + d);
          g.dk(j, k0 + d) += dscore * q(t, q0 + d);
          g.dv(j, k0 + d) += p[j] * dout(t, q0 + d);
        }
      }
    }
  return g;
}

}  // namespace taper::reference
