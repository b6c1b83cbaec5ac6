// SPDX-License-Identifier: Apache-2.0
//
// RMSNorm for any execution space, in the order of canonical/norm.hpp: sixteen lane chains per
// vector and their tree. One team per vector; on a GPU a thread per lane, on a host one thread for
// all lanes.
#pragma once

#include "kernels/detail/DeviceLaunch.hpp"
#include "kernels/detail/DeviceMath.hpp"
#include "kernels/norm.hpp"

namespace taper::detail {

template <class E, class F>
void for_vectors(const char* label, const E& exec, int vectors, const F& f) {
  device_for_teams(label, exec, vectors, kDeviceLanes, kDeviceLanes * sizeof(float), f);
}

template <class E>
void device_rmsnorm(const E& exec, VectorView<float, E> y, VectorView<float, E> inv,
                    VectorView<const float, E> x, VectorView<const float, E> gain,
                    const NormShape& shape) {
  const int vectors = static_cast<int>(x.size() / shape.stride), width = shape.width,
            stride = shape.stride;
  const float eps = shape.eps;
  for_vectors(
      "taper::rmsnorm", exec, vectors, KOKKOS_LAMBDA(const Team<E>& team) {
        const std::int64_t begin = std::int64_t{team.league_rank()} * stride;
        Scratch scratch(team);
        float* lanes = scratch.take<float>(kDeviceLanes);
        team_for(team, kDeviceLanes, [&](const int lane) {
          float chain = 0.0f;
          for (int i = lane; i < width; i += kDeviceLanes)
            chain = Kokkos::fma(x(begin + i), x(begin + i), chain);
          lanes[lane] = chain;
        });
        team.team_barrier();
        const float inverse =
            1.0f / Kokkos::sqrt(device_sum_lanes(lanes) / static_cast<float>(width) + eps);
        team_for(team, kDeviceLanes, [&](const int lane) {
          for (int i = lane; i < width; i += kDeviceLanes)
            y(begin + i) = (x(begin + i) * inverse) * gain(i);
        });
        if (inv.data() != nullptr)
          Kokkos::single(Kokkos::PerTeam(team), [&] { inv(team.league_rank()) = inverse; });
      });
}

// dgain += (dy * x) * inv over vectors in ascending order.
template <class E>
void device_accumulate_gain(const E& exec, VectorView<float, E> dgain,
                            VectorView<const float, E> dy, VectorView<const float, E> x,
                            VectorView<const float, E> inv, const NormShape& shape) {
  const int vectors = static_cast<int>(x.size() / shape.stride), stride = shape.stride;
  device_for_each(
      "taper::rmsnorm_dgain", exec, shape.width, KOKKOS_LAMBDA(const int i) {
        float sum = dgain(i);
        for (int v = 0; v < vectors; ++v) {
          const std::int64_t at = static_cast<std::int64_t>(v) * stride + i;
          sum += (dy(at) * x(at)) * inv(v);
        }
        dgain(i) = sum;
      });
}

template <class E>
void device_rmsnorm_backward(const E& exec, VectorView<float, E> dx, VectorView<float, E> dgain,
                             VectorView<const float, E> dy, VectorView<const float, E> x,
                             VectorView<const float, E> inv, VectorView<const float, E> gain,
                             const NormShape& shape, Accumulate accumulate) {
  device_accumulate_gain(exec, dgain, dy, x, inv, shape);  // first: dx may overwrite dy
  const int vectors = static_cast<int>(x.size() / shape.stride), width = shape.width,
            stride = shape.stride;
  const bool adds = accumulate == Accumulate::kYes;
  for_vectors(
      "taper::rmsnorm_backward", exec, vectors, KOKKOS_LAMBDA(const Team<E>& team) {
        const std::int64_t begin = std::int64_t{team.league_rank()} * stride;
        Scratch scratch(team);
        float* lanes = scratch.take<float>(kDeviceLanes);
        team_for(team, kDeviceLanes, [&](const int lane) {
          float chain = 0.0f;
          for (int i = lane; i < width; i += kDeviceLanes)
            chain = Kokkos::fma(dy(begin + i) * gain(i), x(begin + i), chain);
          lanes[lane] = chain;
        });
        team.team_barrier();
        const float inverse = inv(team.league_rank());
        const float factor =
            -(device_sum_lanes(lanes) * inverse * inverse * inverse / static_cast<float>(width));
        team_for(team, kDeviceLanes, [&](const int lane) {
          for (int i = lane; i < width; i += kDeviceLanes) {
            const float value =
                Kokkos::fma(x(begin + i), factor, (dy(begin + i) * gain(i)) * inverse);
            dx(begin + i) = adds ? dx(begin + i) + value : value;
          }
        });
      });
}

}  // namespace taper::detail
