// SPDX-License-Identifier: Apache-2.0
//
// Operations on rows and elements for any execution space: copies, embeddings, rope, dot products
// of the value head, AdamW. Chains go over rows or columns in ascending order, as in canonical/.
#pragma once

#include "base/Bf16.hpp"
#include "kernels/adamw.hpp"
#include "kernels/copy.hpp"
#include "kernels/detail/DeviceGradient.hpp"
#include "kernels/detail/DeviceLaunch.hpp"
#include "kernels/detail/DeviceMath.hpp"
#include "kernels/dot_rows.hpp"
#include "kernels/embedding.hpp"
#include "kernels/rope.hpp"

namespace taper::detail {

template <class E>
void device_fill(const E& exec, VectorView<float, E> y, float value) {
  const std::int64_t n = y.size();
  if (is_of_quads(y.data(), n)) {
    auto* to = reinterpret_cast<Quad*>(y.data());
    device_for_each(
        "taper::fill", exec, n / 4, KOKKOS_LAMBDA(const std::int64_t i) {
          to[i] = {{value, value, value, value}};
        });
    return;
  }
  device_for_each(
      "taper::fill", exec, n, KOKKOS_LAMBDA(const std::int64_t i) { y(i) = value; });
}

template <class E>
void device_copy(const E& exec, VectorView<float, E> y, VectorView<const float, E> x) {
  const std::int64_t n = y.size();
  if (is_of_quads(y.data(), n) && is_of_quads(x.data(), n)) {
    auto* to = reinterpret_cast<Quad*>(y.data());
    const auto* from = reinterpret_cast<const Quad*>(x.data());
    device_for_each(
        "taper::copy", exec, n / 4, KOKKOS_LAMBDA(const std::int64_t i) { to[i] = from[i]; });
    return;
  }
  device_for_each(
      "taper::copy", exec, n, KOKKOS_LAMBDA(const std::int64_t i) { y(i) = x(i); });
}

template <class E>
void device_copy_blocks(const E& exec, VectorView<const BlockCopy, E> blocks, std::int64_t size) {
  device_for_each(
      "taper::copy_blocks", exec, static_cast<std::int64_t>(blocks.size()) * size,
      KOKKOS_LAMBDA(const std::int64_t i) {
        const BlockCopy& block = blocks(i / size);
        block.to[i % size] = block.from[i % size];
      });
}

KOKKOS_INLINE_FUNCTION void team_copy(const Team& team, float* to, const float* from, int n) {
  team_read(
      team, n, [&](const int i) { return from[i]; },
      [&](const int i, const float value) { to[i] = value; });
}

template <class E>
void device_gather_rows(const E& exec, MatrixView<float, E> y, MatrixView<const float, E> x,
                        VectorView<const std::int32_t, E> rows) {
  const int columns = y.extent_int(1);
  device_for_teams(
      "taper::gather_rows", exec, y.extent_int(0), 256, 0, KOKKOS_LAMBDA(const Team& team) {
        const int row = team.league_rank();
        team_copy(team, &y(row, 0), &x(rows(row), 0), columns);
      });
}

template <class E>
void device_scatter_rows(const E& exec, MatrixView<float, E> y, MatrixView<const float, E> x,
                         VectorView<const std::int32_t, E> rows) {
  const int columns = x.extent_int(1);
  device_for_teams(
      "taper::scatter_rows", exec, x.extent_int(0), 256, 0, KOKKOS_LAMBDA(const Team& team) {
        const int row = team.league_rank();
        team_copy(team, &y(rows(row), 0), &x(row, 0), columns);
      });
}

// Rows may name one row several times: the team of the first that does so adds all, in their order.
template <class E>
void device_add_rows(const E& exec, const GradientView& y, MatrixView<const float, E> x,
                     VectorView<const std::int32_t, E> rows, std::int32_t first) {
  const int n = x.extent_int(0);
  const std::int64_t limit = y.rows, columns = y.columns;
  float* const sums = y.f32();
  Fixed* const fixed = y.fixed();
  device_for_teams(
      "taper::add_rows", exec, n, 256, 0, KOKKOS_LAMBDA(const Team& team) {
        const int i = team.league_rank();
        const std::int32_t row = rows(i) - first;
        if (row < 0 || row >= limit) return;
        const auto row_of = [&](const int j) { return rows(j) - first; };
        bool is_first = true;
        read_ahead(0, i, 1, row_of,
                   [&](int, const std::int32_t other) { is_first = is_first && other != row; });
        if (!is_first) return;
        read_ahead(i, n, 1, row_of, [&](const int j, const std::int32_t other) {
          if (other != row) return;
          team_for(team, static_cast<int>(columns), [&](const int c) {
            const std::int64_t at = row * columns + c;
            if (fixed == nullptr)
              sums[at] += x(j, c);
            else
              fixed[at] += to_fixed(x(j, c));
          });
        });
      });
}

template <class E>
void device_embed(const E& exec, MatrixView<float, E> y, VectorView<const std::int32_t, E> ids,
                  const PackedMatrix& table, std::int32_t vocab_begin) {
  const std::int64_t width = table.k;
  device_for_each(
      "taper::embed", exec, y.extent_int(0) * width, KOKKOS_LAMBDA(const std::int64_t i) {
        const std::int64_t row = i / width, k = i % width;
        const std::int32_t local = ids(row) - vocab_begin;
        if (local < 0 || local >= table.columns) return;
        const std::int64_t at =
            local / kPanelColumns * table.panel_stride + local % kPanelColumns + k * kPanelColumns;
        y(row, k) = table.type == WeightType::kBf16
                        ? to_float(static_cast<const bf16*>(table.data)[at])
                        : static_cast<const float*>(table.data)[at];
      });
}

template <class E>
void device_rope(const E& exec, MatrixView<float, E> x, VectorView<const std::int32_t, E> positions,
                 MatrixView<const float, E> table, const RopeShape& shape, float sign) {
  const int half = shape.head_dim / 2, heads = shape.heads, stride = shape.stride;
  const std::int64_t pairs = std::int64_t{heads} * half;
  device_for_each(
      "taper::rope", exec, x.extent_int(0) * pairs, KOKKOS_LAMBDA(const std::int64_t i) {
        const std::int64_t row = i / pairs;
        const int head = static_cast<int>(i % pairs) / half, k = static_cast<int>(i % pairs) % half;
        rotate_pair(&x(row, 0) + head * stride, &table(positions(row), 0), half, k, sign);
      });
}

template <class E>
void device_dot_rows(const E& exec, VectorView<float, E> y, MatrixView<const float, E> x,
                     VectorView<const float, E> w) {
  const int columns = x.extent_int(1);
  device_for_each(
      "taper::dot_rows", exec, x.extent_int(0), KOKKOS_LAMBDA(const std::int64_t r) {
        double sum = 0.0;
        for (int c = 0; c < columns; ++c)
          sum += static_cast<double>(x(r, c)) * static_cast<double>(w(c));
        y(r) = static_cast<float>(sum);
      });
}

template <class E>
void device_dot_rows_backward(const E& exec, MatrixView<float, E> dx, const GradientView& dw,
                              VectorView<const float, E> dy, MatrixView<const float, E> x,
                              VectorView<const float, E> w) {
  const int rows = x.extent_int(0);
  const DeviceGradient sums(dw);
  device_for_each(
      "taper::dot_rows_backward", exec, x.extent_int(1), KOKKOS_LAMBDA(const std::int64_t c) {
        float chain = sums.begin(c);
        for (int r = 0; r < rows; ++r) {
          chain = Kokkos::fma(dy(r), x(r, c), chain);
          dx(r, c) = dy(r) * w(c);
        }
        sums.end(c, chain);
      });
}

template <class E>
void device_adamw(const E& exec, VectorView<float, E> parameters, VectorView<float, E> first,
                  VectorView<float, E> second, const GradientView& gradients, const AdamWStep& s) {
  const DeviceGradient read(gradients);
  device_for_each(
      "taper::adamw", exec, parameters.size(), KOKKOS_LAMBDA(const std::int64_t i) {
        const float g = read(i) * s.grad_scale;
        const float m = s.beta1 * first(i) + s.rest1 * g;
        const float v = s.beta2 * second(i) + s.rest2 * g * g;
        const float root = Kokkos::sqrt(v) / s.sqrt_correction2 + s.eps;
        first(i) = m;
        second(i) = v;
        parameters(i) =
            parameters(i) * (1.0f - s.lr * s.weight_decay) - s.lr / s.correction1 * (m / root);
      });
}

template <class E>
void device_add_fixed_sums(const E& exec, VectorView<Fixed, E> sums,
                           VectorView<const Fixed, E> terms) {
  device_for_each(
      "taper::add_fixed_sums", exec, sums.size(),
      KOKKOS_LAMBDA(const std::int64_t i) { sums(i) += terms(i); });
}

// A team has a part; sixteen of its threads a block of 1024 at a time.
template <class E>
void device_sum_squares(const E& exec, double* sums, const GradientView& x,
                        VectorView<const std::int64_t, E> offsets) {
  constexpr int kBlock = 1024, kThreads = 1024, kBlocks = kThreads / kDeviceLanes;
  const DeviceGradient read(x);
  device_for_teams(
      "taper::sum_squares", exec, static_cast<int>(offsets.size()) - 1, kThreads,
      kThreads * sizeof(float), KOKKOS_LAMBDA(const Team& team) {
        const int p = team.league_rank();
        const std::int64_t begin = offsets(p), end = offsets(p + 1);
        float* lanes = Scratch(team).take<float>(kThreads);
        double sum = 0.0;
        for (std::int64_t first = begin; first < end; first += kBlocks * kBlock) {
          team_for(team, kThreads, [&](const int t) {
            const std::int64_t block = first + t / kDeviceLanes * kBlock;
            const std::int64_t left = end - block;
            float lane = 0.0f;
            read_ahead(
                t % kDeviceLanes, static_cast<int>(left < kBlock ? left : kBlock), kDeviceLanes,
                [&](const int i) { return read(block + i); },
                [&](int, const float value) { lane = Kokkos::fma(value, value, lane); });
            lanes[t] = lane;
          });
          team.team_barrier();
          once(team, [&] {
            for (int b = 0; b < kBlocks && first + b * kBlock < end; ++b) {
              float block[kDeviceLanes];
              for (int i = 0; i < kDeviceLanes; ++i) block[i] = lanes[b * kDeviceLanes + i];
              sum += static_cast<double>(device_sum_lanes(block));
            }
          });
          team.team_barrier();
        }
        once(team, [&] { sums[p] = sum; });
      });
}

}  // namespace taper::detail
