// SPDX-License-Identifier: Apache-2.0
//
// Steps of a layer that are one launch on devices. On the host, and in f32 arithmetic on devices
// where it says so, they are the calls that they are described by; the bits are always those.
#pragma once

#include <cstdint>

#include "kernels/Views.hpp"
#include "kernels/attention.hpp"
#include "kernels/product.hpp"

namespace taper {

// One of two products of the same inputs.
template <class E>
struct Projection {
  MatrixView<float, E> y;  // (rows, w.columns)
  PackedMatrix w;
  VectorView<const float, E> bias;  // (w.columns) or empty
};

// multiply() for each. In f32 arithmetic two launches.
template <class E>
void multiply_both(const E& exec, const Projection<E>& first, const Projection<E>& second,
                   MatrixView<const float, E> x);

// multiply() into gate_up (rows, w.columns), then swiglu() into y. In f32 arithmetic two launches.
template <class E>
void multiply_swiglu(const E& exec, MatrixView<float, E> y, MatrixView<float, E> gate_up,
                     MatrixView<const float, E> x, const PackedMatrix& w);

// multiply_leaves() of leaves that leave one partial sum, then y = residual + sum; y may be the
// residual. `scratch` has room for y. In f32 arithmetic two launches.
template <class E>
void multiply_leaves_and_add(const E& exec, MatrixView<float, E> y,
                             MatrixView<const float, E> residual, MatrixView<const float, E> x,
                             const PackedMatrix& w, const LeafOrder& leaves, float* scratch);

// Heads that are normed each for itself: y and inv from x, see rmsnorm().
template <class E>
struct HeadNorm {
  VectorView<float, E> y, inv;
  VectorView<const float, E> x, gain;
};

// rmsnorm() of query heads (rows, heads, head_pad) and of the keys among key_value (rows, kv heads,
// 2, head_pad), whose values are copied.
template <class E>
void norm_heads(const E& exec, const HeadNorm<E>& query, const HeadNorm<E>& key_value,
                const AttentionShape& shape, float eps);

// rope() of q and of the keys among kv, in place, then write_pages(). Row segment.row + t has the
// position segment.start + t.
template <class E>
void rotate_and_write(const E& exec, MatrixView<float, E> q, MatrixView<float, E> kv,
                      VectorView<const std::int32_t, E> positions, MatrixView<const float, E> table,
                      const LayerPages& pages, Segments<E> segments, const AttentionShape& shape);

}  // namespace taper
