// SPDX-License-Identifier: Apache-2.0
//
// RMSNorm for any execution space, in the order of canonical/norm.hpp: sixteen lane chains per
// vector and their tree. One team per vector: its threads bring the values, sixteen of them add.
#pragma once

#include "kernels/detail/DeviceGradient.hpp"
#include "kernels/detail/DeviceLaunch.hpp"
#include "kernels/detail/DeviceMath.hpp"
#include "kernels/norm.hpp"

namespace taper::detail {

// What the threads of a vector share: the lanes, and values of the vector in fast memory where it
// is not too long for that.
struct NormScratch {
  float* lanes;
  float* values;  // null: too long
};

// f(team, scratch) for each vector of `width` values.
template <class E, class F>
void for_vectors(const char* label, const E& exec, int vectors, int width, const F& f) {
  constexpr int kMostHeld = 8192;
  const int threads = width <= 256 ? 32 : 256, held = width <= kMostHeld ? width : 0;
  device_for_teams(
      label, exec, vectors, threads,
      static_cast<std::size_t>(kDeviceLanes + held + 8) * sizeof(float),
      KOKKOS_LAMBDA(const Team& team) {
        Scratch scratch(team);
        float* lanes = scratch.take<float>(kDeviceLanes);
        f(team, NormScratch{lanes, held > 0 ? scratch.take<float>(held) : nullptr});
      });
}

// value(i) for i in [0, n): computed once by a thread each, where there is room for them.
template <class F>
KOKKOS_INLINE_FUNCTION auto hold(const Team& team, const NormScratch& scratch, int n,
                                 const F& value) {
  if (scratch.values != nullptr) {
    team_read(team, n, value, [&](const int i, const float v) { scratch.values[i] = v; });
    team.team_barrier();
  }
  return
      [held = scratch.values, value](const int i) { return held != nullptr ? held[i] : value(i); };
}

// The sum of products a(i) b(i) in lanes and their tree.
template <class A, class B>
KOKKOS_INLINE_FUNCTION float team_lane_dot(const Team& team, float* lanes, int n, const A& a,
                                           const B& b) {
  team_for(team, kDeviceLanes, [&](const int lane) {
    float chain = 0.0f;
    read_ahead(lane, n, kDeviceLanes, a,
               [&](const int i, const float v) { chain = Kokkos::fma(v, b(i), chain); });
    lanes[lane] = chain;
  });
  team.team_barrier();
  return device_sum_lanes(lanes);
}

// Vector number `vector`, whose values begin at `begin`.
template <class E>
KOKKOS_INLINE_FUNCTION void norm_vector(const Team& team, const NormScratch& scratch,
                                        const VectorView<float, E>& y,
                                        const VectorView<float, E>& inv,
                                        const VectorView<const float, E>& x,
                                        const VectorView<const float, E>& gain, std::int64_t vector,
                                        std::int64_t begin, const NormShape& shape) {
  const auto value = hold(team, scratch, shape.width, [&](const int i) { return x(begin + i); });
  const float sum = team_lane_dot(team, scratch.lanes, shape.width, value, value);
  const float inverse = 1.0f / Kokkos::sqrt(sum / static_cast<float>(shape.width) + shape.eps);
  team_read(
      team, shape.width, [&](const int i) { return gain(i); },
      [&](const int i, const float g) { y(begin + i) = (value(i) * inverse) * g; });
  if (inv.data() != nullptr) once(team, [&] { inv(vector) = inverse; });
}

template <class E>
void device_rmsnorm(const E& exec, VectorView<float, E> y, VectorView<float, E> inv,
                    VectorView<const float, E> x, VectorView<const float, E> gain,
                    const NormShape& shape) {
  const int vectors = static_cast<int>(x.size() / shape.stride);
  const NormShape norm = shape;
  for_vectors(
      "taper::rmsnorm", exec, vectors, shape.width,
      KOKKOS_LAMBDA(const Team& team, const NormScratch& scratch) {
        const std::int64_t vector = team.league_rank();
        norm_vector<E>(team, scratch, y, inv, x, gain, vector, vector * norm.stride, norm);
      });
}

// dgain += (dy * x) * inv over vectors in ascending order; fixed-point sums get a chain for each
// place in a row. A team has some columns: all its threads bring terms, one of each column adds.
template <class E>
void device_accumulate_gain(const E& exec, const GradientView& dgain, VectorView<const float, E> dy,
                            VectorView<const float, E> x, VectorView<const float, E> inv,
                            const NormShape& shape) {
  const int vectors = static_cast<int>(x.size() / shape.stride), stride = shape.stride,
            chains = dgain.is_fixed() ? shape.per_row : 1;
  constexpr int kColumns = 32, kTerms = 64;  // of each column at once
  const int width = shape.width;
  const DeviceGradient sums(dgain);
  device_for_teams(
      "taper::rmsnorm_dgain", exec, (width + kColumns - 1) / kColumns, 256,
      (kTerms + 1) * kColumns * sizeof(float), KOKKOS_LAMBDA(const Team& team) {
        Scratch scratch(team);
        float* const chain_sums = scratch.take<float>(kColumns);
        float* const terms = scratch.take<float>(kTerms * kColumns);
        const int first = team.league_rank() * kColumns,
                  columns = width - first < kColumns ? width - first : kColumns;
        for (int chain = 0; chain < chains; ++chain) {
          team_for(team, columns, [&](const int c) { chain_sums[c] = sums.begin(first + c); });
          const int count = (vectors - chain + chains - 1) / chains;
          for (int begin = 0; begin < count; begin += kTerms) {
            const int n = count - begin < kTerms ? count - begin : kTerms;
            team.team_barrier();  // the terms before are added
            team_read(
                team, n * columns,
                [&](const int i) {
                  const int v = chain + (begin + i / columns) * chains;
                  const std::int64_t at =
                      static_cast<std::int64_t>(v) * stride + first + i % columns;
                  return (dy(at) * x(at)) * inv(v);
                },
                [&](const int i, const float term) { terms[i] = term; });
            team.team_barrier();
            team_for(team, columns, [&](const int c) {
              float sum = chain_sums[c];
              for (int i = 0; i < n; ++i) sum += terms[i * columns + c];
              chain_sums[c] = sum;
            });
          }
          team_for(team, columns, [&](const int c) { sums.end(first + c, chain_sums[c]); });
        }
      });
}

template <class E>
void device_rmsnorm_backward(const E& exec, VectorView<float, E> dx, const GradientView& dgain,
                             VectorView<const float, E> dy, VectorView<const float, E> x,
                             VectorView<const float, E> inv, VectorView<const float, E> gain,
                             const NormShape& shape, Accumulate accumulate) {
  device_accumulate_gain(exec, dgain, dy, x, inv, shape);  // first: dx may overwrite dy
  const int vectors = static_cast<int>(x.size() / shape.stride), width = shape.width,
            stride = shape.stride;
  const bool adds = accumulate == Accumulate::kYes;
  for_vectors(
      "taper::rmsnorm_backward", exec, vectors, width,
      KOKKOS_LAMBDA(const Team& team, const NormScratch& scratch) {
        const std::int64_t begin = std::int64_t{team.league_rank()} * stride;
        const auto slope =
            hold(team, scratch, width, [&](const int i) { return dy(begin + i) * gain(i); });
        const float dot = team_lane_dot(team, scratch.lanes, width, slope,
                                        [&](const int i) { return x(begin + i); });
        const float inverse = inv(team.league_rank());
        const float factor = -(dot * inverse * inverse * inverse / static_cast<float>(width));
        team_for(team, width, [&](const int i) {
          const float value = Kokkos::fma(x(begin + i), factor, slope(i) * inverse);
          dx(begin + i) = adds ? dx(begin + i) + value : value;
        });
      });
}

}  // namespace taper::detail
