// SPDX-License-Identifier: Apache-2.0
//
// Values that only move: fills, copies, rows by index, and copies between the memory of an
// execution space and that of the host. The one sum, add_rows, is one chain of additions per
// element over ascending rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/Views.hpp"
#include "kernels/gradient.hpp"

namespace taper {

// y = value.
template <class E>
void fill(const E& exec, VectorView<float, E> y, float value);

// y = x; they must not overlap.
template <class E>
void copy(const E& exec, VectorView<float, E> y, VectorView<const float, E> x);

// One of many copies of equal size.
struct BlockCopy {
  float* to = nullptr;
  const float* from = nullptr;
};

// Copies `size` floats for each block. What is written overlaps nothing that is read or written.
template <class E>
void copy_blocks(const E& exec, VectorView<const BlockCopy, E> blocks, std::int64_t size);

// y (n, h): row i = row rows(i) of x (any rows, h).
template <class E>
void gather_rows(const E& exec, MatrixView<float, E> y, MatrixView<const float, E> x,
                 VectorView<const std::int32_t, E> rows);

// y (any rows, h): row rows(i) = row i of x (n, h). No row is named twice.
template <class E>
void scatter_rows(const E& exec, MatrixView<float, E> y, MatrixView<const float, E> x,
                  VectorView<const std::int32_t, E> rows);

// y (any rows, h): row rows(i) - first += row i of x (n, h), in ascending order of i (fixed-point
// sums: each rounded alone); rows outside y are passed over. The gradient of gather_rows and of
// embed.
template <class E>
void add_rows(const E& exec, const GradientView& y, MatrixView<const float, E> x,
              VectorView<const std::int32_t, E> rows, std::int32_t first = 0);

// Copies between the memory of the execution space and that of the host; return when the values
// have arrived.
template <class E>
void copy_to_host(const E& exec, std::span<float> to, VectorView<const float, E> from);
template <class E>
void copy_from_host(const E& exec, VectorView<float, E> to, std::span<const float> from);

// The values of x for the host to read: x itself if the host can access it, else a copy in
// `buffer`.
template <class E>
std::span<const float> host_values(const E& exec, VectorView<const float, E> x,
                                   std::vector<float>& buffer);

}  // namespace taper
