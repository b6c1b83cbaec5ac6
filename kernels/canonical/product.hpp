// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace taper::canonical {

// start + a[0] b[0] + a[1] b[1] + ... by fused multiply-adds in ascending order.
inline float chain(float start, const float* a, std::int64_t a_step, const float* b,
                   std::int64_t b_step, int n) {
  for (int k = 0; k < n; ++k) start = std::fma(a[k * a_step], b[k * b_step], start);
  return start;
}

// The chains of Arithmetic::kF32.
struct FmaChain {
  float operator()(float start, const float* a, std::int64_t a_step, const float* b,
                   std::int64_t b_step, int n) const {
    return chain(start, a, a_step, b, b_step, n);
  }
};

// y (rows, columns) = x (rows, k) w^T, w (columns, k) as rounded for the product; bias is added
// after the chain.
template <class Chain = FmaChain>
std::vector<float> multiply(const float* x, const float* w, const float* bias, int rows,
                            int columns, int k, const Chain& chain = {}) {
  std::vector<float> y;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) {
      const float sum = chain(0.0f, x + std::int64_t{r} * k, 1, w + std::int64_t{c} * k, 1, k);
      y.push_back(bias == nullptr ? sum : sum + bias[c]);
    }
  return y;
}

// gradient (n, m) += a^T b over rows in ascending order, each element one chain that goes on from
// what is there.
template <class Chain = FmaChain>
void accumulate_outer(float* gradient, const float* a, const float* b, int rows, int n, int m,
                      const Chain& chain = {}) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < m; ++j)
      gradient[i * m + j] = chain(gradient[i * m + j], a + i, n, b + j, m, rows);
}

// A stack machine over values: push the next one, then program[i] times replace the two top values
// by their sum. Returns what remains, bottom first.
inline std::vector<float> run_tree(const std::vector<int>& program,
                                   const std::vector<float>& values) {
  std::vector<float> stack;
  for (std::size_t i = 0; i < program.size(); ++i) {
    stack.push_back(values[i]);
    for (int n = program[i]; n > 0; --n) {
      const float upper = stack.back();
      stack.pop_back();
      stack.back() = stack.back() + upper;
    }
  }
  return stack;
}

// Leaves of a row-parallel product: leaf l covers inputs [l * stride, l * stride + size), the last
// one last_size.
struct Leaves {
  int stride = 0, size = 0, last_size = 0;
  std::vector<int> program;
  int inputs = 0;  // in all; 0: count * stride
  int count() const { return static_cast<int>(program.size()); }
};

// Partial sums (partials, rows, columns) of x (rows, inputs) w^T, w (columns, inputs).
template <class Chain = FmaChain>
std::vector<float> multiply_leaves(const float* x, const float* w, const Leaves& leaves, int rows,
                                   int columns, const Chain& chain = {}) {
  const int k = leaves.inputs > 0 ? leaves.inputs : leaves.count() * leaves.stride;
  std::vector<float> y;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) {
      std::vector<float> sums;
      for (int l = 0; l < leaves.count(); ++l) {
        const int n = l + 1 == leaves.count() ? leaves.last_size : leaves.size;
        sums.push_back(
            chain(0.0f, x + r * k + l * leaves.stride, 1, w + c * k + l * leaves.stride, 1, n));
      }
      const std::vector<float> partials = run_tree(leaves.program, sums);
      if (y.empty()) y.resize(partials.size() * rows * columns);
      for (std::size_t p = 0; p < partials.size(); ++p)
        y[(p * rows + r) * columns + c] = partials[p];
    }
  return y;
}

}  // namespace taper::canonical
