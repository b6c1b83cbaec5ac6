// SPDX-License-Identifier: Apache-2.0
//
// Rows of logits for any execution space, with the results of canonical/logits.hpp: maxima and
// integer masses are exact in any order, sums of floats keep theirs. A team has a row.
#pragma once

#include <cmath>

#include "kernels/detail/DeviceLaunch.hpp"
#include "kernels/detail/DeviceMath.hpp"
#include "kernels/detail/Rows.hpp"
#include "kernels/logits.hpp"

namespace taper::detail {

inline constexpr int kLogitThreads = 128;

KOKKOS_INLINE_FUNCTION std::int64_t device_mass(float logit, float max) {
  // Below 2^41, so that the nearest integer is exact in double as well.
  return static_cast<std::int64_t>(
      Kokkos::nearbyint(static_cast<double>(device_exp(logit - max) * kMassOne)));
}

KOKKOS_INLINE_FUNCTION float minus_infinity() {
  return Kokkos::bit_cast<float>(0xff800000u);
}

// The sum, or whatever join makes, of what the threads of a team have; all get it.
template <class V, class Join>
KOKKOS_INLINE_FUNCTION V team_join(const Team& team, V* parts, V mine, const Join& join) {
  parts[team.team_rank()] = mine;
  team.team_barrier();
  V all = parts[0];
  for (int t = 1; t < team.team_size(); ++t) all = join(all, parts[t]);
  team.team_barrier();
  return all;
}

// f(team, row) for each row, with room for a V of each thread.
template <class V, class E, class F>
void for_rows(const char* label, const E& exec, int rows, const F& f) {
  device_for_teams(label, exec, rows, kLogitThreads, kLogitThreads * sizeof(V), f);
}

template <class E>
void device_scale_logits(const E& exec, MatrixView<float, E> logits, VectorView<float, E> max,
                         int valid, float temperature) {
  const int columns = logits.extent_int(1);
  for_rows<float>(
      "taper::scale_logits", exec, logits.extent_int(0), KOKKOS_LAMBDA(const Team& team) {
        const int r = team.league_rank();
        float best = minus_infinity();
        team_for(team, columns, [&](const int c) {
          if (c >= valid) {
            logits(r, c) = minus_infinity();
            return;
          }
          const float x = logits(r, c) / temperature;
          logits(r, c) = x;
          best = x > best ? x : best;
        });
        Scratch scratch(team);
        best = team_join(team, scratch.take<float>(team.team_size()), best,
                         [](const float a, const float b) { return b > a ? b : a; });
        once(team, [&] { max(r) = best; });
      });
}

template <class E>
void device_sum_masses(const E& exec, VectorView<std::int64_t, E> mass,
                       MatrixView<const float, E> logits, VectorView<const float, E> max,
                       int valid) {
  for_rows<std::int64_t>(
      "taper::sum_masses", exec, logits.extent_int(0), KOKKOS_LAMBDA(const Team& team) {
        const int r = team.league_rank();
        std::int64_t sum = 0;
        team_for(team, valid, [&](const int c) { sum += device_mass(logits(r, c), max(r)); });
        Scratch scratch(team);
        sum = team_join(team, scratch.take<std::int64_t>(team.team_size()), sum,
                        [](const std::int64_t a, const std::int64_t b) { return a + b; });
        once(team, [&] { mass(r) = sum; });
      });
}

template <class E>
void device_list_masses(const E& exec, MatrixView<std::int64_t, E> masses,
                        MatrixView<const float, E> logits, VectorView<const float, E> max,
                        int valid) {
  const std::int64_t columns = valid;
  device_for_each(
      "taper::list_masses", exec, logits.extent_int(0) * columns,
      KOKKOS_LAMBDA(const std::int64_t i) {
        masses(i / columns, i % columns) =
            device_mass(logits(i / columns, i % columns), max(i / columns));
      });
}

// Each thread sums a contiguous part of the row; the one in whose part the target is passed looks
// for the column.
template <class E>
void device_find_masses(const E& exec, VectorView<std::int32_t, E> choice,
                        MatrixView<const float, E> logits, VectorView<const float, E> max,
                        VectorView<const std::int64_t, E> target, int valid) {
  for_rows<std::int64_t>(
      "taper::find_masses", exec, logits.extent_int(0), KOKKOS_LAMBDA(const Team& team) {
        const int r = team.league_rank(), threads = team.team_size(), me = team.team_rank();
        Scratch scratch(team);
        auto* sums = scratch.take<std::int64_t>(threads);
        const int part = (valid + threads - 1) / threads;
        const int begin = me * part < valid ? me * part : valid;
        const int end = begin + part < valid ? begin + part : valid;
        std::int64_t sum = 0;
        for (int c = begin; c < end; ++c) sum += device_mass(logits(r, c), max(r));
        sums[me] = sum;
        team.team_barrier();
        std::int64_t left = target(r), before = 0;
        for (int t = 0; t < me; ++t) before += sums[t];
        std::int64_t all = 0;
        for (int t = 0; t < threads; ++t) all += sums[t];
        if (left < 0 || left >= all) {
          if (me == 0) choice(r) = -1;
          return;
        }
        left -= before;
        if (left < 0 || left >= sum) return;
        int c = begin;
        for (left -= device_mass(logits(r, c), max(r)); left >= 0;)
          left -= device_mass(logits(r, ++c), max(r));
        choice(r) = c;
      });
}

// The first column that has the maximum.
template <class E>
void device_find_max(const E& exec, VectorView<std::int32_t, E> column,
                     MatrixView<const float, E> logits, VectorView<const float, E> max, int valid) {
  for_rows<std::int32_t>(
      "taper::find_max", exec, logits.extent_int(0), KOKKOS_LAMBDA(const Team& team) {
        const int r = team.league_rank();
        std::int32_t first = valid;
        team_for(team, valid, [&](const int c) {
          if (c < first && logits(r, c) == max(r)) first = c;
        });
        Scratch scratch(team);
        first = team_join(team, scratch.take<std::int32_t>(team.team_size()), first,
                          [](const std::int32_t a, const std::int32_t b) { return b < a ? b : a; });
        once(team, [&] { column(r) = first < valid ? first : -1; });
      });
}

// Blocks of sixteen, each by its tree; one thread adds them in double, in their order.
template <class E>
void device_sum_weighted_logits(const E& exec, VectorView<double, E> weighted,
                                MatrixView<const float, E> logits, VectorView<const float, E> max,
                                int valid) {
  for_rows<float>(
      "taper::sum_weighted_logits", exec, logits.extent_int(0), KOKKOS_LAMBDA(const Team& team) {
        const int r = team.league_rank(), blocks = (valid + kDeviceLanes - 1) / kDeviceLanes;
        Scratch scratch(team);
        float* sums = scratch.take<float>(kLogitThreads);
        double total = 0.0;
        for (int first = 0; first < blocks; first += kLogitThreads) {
          const int n = blocks - first < kLogitThreads ? blocks - first : kLogitThreads;
          team_for(team, n, [&](const int b) {
            float lanes[kDeviceLanes] = {};
            const int begin = (first + b) * kDeviceLanes;
            for (int i = 0; i < kDeviceLanes && begin + i < valid; ++i) {
              const float distance = logits(r, begin + i) - max(r);
              const float centred = distance > -200.0f ? distance : -200.0f;
              lanes[i] = device_exp(centred) * centred;
            }
            sums[b] = device_sum_lanes(lanes);
          });
          team.team_barrier();
          for (int b = 0; b < n; ++b) total += static_cast<double>(sums[b]);
          team.team_barrier();
        }
        once(team, [&] { weighted(r) = total; });
      });
}

template <class E>
void device_pick_logits(const E& exec, VectorView<float, E> y, MatrixView<const float, E> logits,
                        VectorView<const LogitPlace, E> places) {
  device_for_each(
      "taper::pick_logits", exec, places.size(), KOKKOS_LAMBDA(const std::int64_t i) {
        const LogitPlace at = places(i);
        y(i) = at.column >= 0 ? logits(at.row, at.column) : minus_infinity();
      });
}

template <class E>
void device_penalize_logits(const E& exec, MatrixView<float, E> logits,
                            VectorView<const LogitPlace, E> places, float penalty) {
  device_for_each(
      "taper::penalize_logits", exec, places.size(), KOKKOS_LAMBDA(const std::int64_t i) {
        float& logit = logits(places(i).row, places(i).column);
        logit = logit < 0.0f ? logit * penalty : logit / penalty;
      });
}

template <class E>
void device_logit_gradients(const E& exec, MatrixView<float, E> logits,
                            VectorView<const LogitSlope, E> slopes,
                            VectorView<const std::int32_t, E> target, int valid,
                            float temperature) {
  const std::int64_t columns = logits.extent_int(1);
  const float inverse = 1.0f / temperature;
  device_for_each(
      "taper::logit_gradients", exec, logits.extent_int(0) * columns,
      KOKKOS_LAMBDA(const std::int64_t i) {
        const std::int64_t r = i / columns, c = i % columns;
        if (c >= valid) {
          logits(r, c) = 0.0f;
          return;
        }
        const LogitSlope s = slopes(r);
        const float distance = logits(r, c) - s.lse;
        const float log_p = distance > -200.0f ? distance : -200.0f;
        float slope = device_exp(log_p) *
                      Kokkos::fma(-s.by_entropy, log_p + s.entropy, -s.by_log_prob) * inverse;
        if (c == target(r)) slope += s.by_log_prob * inverse;
        logits(r, c) = slope;
      });
}

}  // namespace taper::detail
