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

inline constexpr int kLogitThreads = 1024;

KOKKOS_INLINE_FUNCTION std::int64_t device_mass(float logit, float max) {
  // Below 2^41, so that the nearest integer is exact in double as well.
  return static_cast<std::int64_t>(
      Kokkos::nearbyint(static_cast<double>(device_exp(logit - max) * kMassOne)));
}

KOKKOS_INLINE_FUNCTION float minus_infinity() {
  return Kokkos::bit_cast<float>(0xff800000u);
}

// Sums of int64 values of the threads of a team.
struct TeamPrefix {
  std::int64_t before, all;  // of the threads before this one, of all
};
// `parts` has room for a value of each thread and a 32nd more.
KOKKOS_INLINE_FUNCTION TeamPrefix team_prefix(const Team& team, std::int64_t* parts,
                                              std::int64_t mine) {
  const int me = team.team_rank(), threads = team.team_size(), groups = (threads + 31) / 32;
  std::int64_t* sums = parts + threads;  // of groups of 32 threads
  parts[me] = mine;
  team.team_barrier();
  if (me < groups) {
    sums[me] = 0;
    for (int t = 32 * me; t < 32 * me + 32 && t < threads; ++t) sums[me] += parts[t];
  }
  team.team_barrier();
  TeamPrefix prefix{0, 0};
  for (int g = 0; g < groups; ++g) {
    if (g == me / 32) prefix.before = prefix.all;
    prefix.all += sums[g];
  }
  for (int t = me / 32 * 32; t < me; ++t) prefix.before += parts[t];
  team.team_barrier();
  return prefix;
}

// f(team, row) for each row, with room for a V of each thread.
template <class V, class E, class F>
void for_rows(const char* label, const E& exec, int rows, const F& f) {
  device_for_teams(label, exec, rows, kLogitThreads, (kLogitThreads + 64) * sizeof(V), f);
}

template <class E>
void device_scale_logits(const E& exec, MatrixView<float, E> logits, VectorView<float, E> max,
                         int valid, float temperature) {
  const int columns = logits.extent_int(1);
  for_rows<float>(
      "taper::scale_logits", exec, logits.extent_int(0), KOKKOS_LAMBDA(const Team& team) {
        const int r = team.league_rank();
        float best = minus_infinity();
        team_read(
            team, valid, [&](const int c) { return logits(r, c); },
            [&](const int c, const float logit) {
              const float x = logit / temperature;
              logits(r, c) = x;
              best = x > best ? x : best;
            });
        team_for(team, columns - valid,
                 [&](const int c) { logits(r, valid + c) = minus_infinity(); });
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
        bool is_nan = false;
        const float top = max(r);
        team_read(
            team, valid, [&](const int c) { return logits(r, c); },
            [&](int, const float logit) {
              sum += device_mass(logit, top);
              is_nan = is_nan || !(logit - top == logit - top);
            });
        // Masses are not negative, and integers made of NaNs could cancel.
        if (is_nan) sum = -1;
        Scratch scratch(team);
        sum = team_join(
            team, scratch.take<std::int64_t>(team.team_size()), sum,
            [](const std::int64_t a, const std::int64_t b) { return a < 0 || b < 0 ? -1 : a + b; });
        once(team, [&] { mass(r) = sum; });
      });
}

// Of a mass above 0: the exponent of the double, in which it is exact, names its highest bit.
KOKKOS_INLINE_FUNCTION int device_mass_level(std::int64_t mass) {
  return kMassLevels - 1 -
         static_cast<int>((Kokkos::bit_cast<std::uint64_t>(static_cast<double>(mass)) >> 52) -
                          1023);
}

// Groups of 32 threads count by themselves: many ids have the same level.
template <class E>
void device_count_mass_levels(const E& exec, MatrixView<MassLevel, E> levels,
                              MatrixView<const float, E> logits, VectorView<const float, E> max,
                              int valid) {
  constexpr int kTables = kLogitThreads / 32;
  device_for_teams(
      "taper::count_mass_levels", exec, logits.extent_int(0), kLogitThreads,
      (kTables * kMassLevels + 1) * sizeof(MassLevel), KOKKOS_LAMBDA(const Team& team) {
        const int r = team.league_rank(), tables = (team.team_size() + 31) / 32;
        Scratch scratch(team);
        auto* counted = scratch.take<MassLevel>(tables * kMassLevels);
        team_for(team, tables * kMassLevels, [&](const int i) { counted[i] = MassLevel{0, 0}; });
        team.team_barrier();
        MassLevel* const mine = counted + team.team_rank() / 32 * kMassLevels;
        const float top = max(r);
        team_read(
            team, valid, [&](const int c) { return logits(r, c); },
            [&](int, const float logit) {
              const std::int64_t mass = device_mass(logit, top);
              if (mass <= 0) return;
              MassLevel& level = mine[device_mass_level(mass)];
              Kokkos::atomic_add(&level.ids, std::int64_t{1});
              Kokkos::atomic_add(&level.mass, mass);
            });
        team.team_barrier();
        team_for(team, kMassLevels, [&](const int j) {
          MassLevel sum{0, 0};
          for (int t = 0; t < tables; ++t) sum += counted[t * kMassLevels + j];
          levels(r, j) = sum;
        });
      });
}

template <class E>
void device_list_weighted_logits(const E& exec, VectorView<WeightedLogit, E> list,
                                 VectorView<const std::int64_t, E> begin,
                                 VectorView<const std::int64_t, E> least,
                                 MatrixView<const float, E> logits, VectorView<const float, E> max,
                                 int valid) {
  device_for_teams(
      "taper::list_weighted_logits", exec, logits.extent_int(0), kLogitThreads,
      2 * sizeof(std::int64_t), KOKKOS_LAMBDA(const Team& team) {
        const int r = team.league_rank();
        Scratch scratch(team);
        auto* listed = scratch.take<std::int64_t>(1);
        once(team, [&] { *listed = 0; });
        team.team_barrier();
        const float top = max(r);
        const std::int64_t lowest = least(r);
        team_read(
            team, valid, [&](const int c) { return logits(r, c); },
            [&](const int c, const float logit) {
              const std::int64_t mass = device_mass(logit, top);
              if (mass < lowest) return;
              const std::int64_t place = Kokkos::atomic_fetch_add(listed, std::int64_t{1});
              list(begin(r) + place) = WeightedLogit{c, logit, mass};
            });
      });
}

// Groups of 32 threads sum a contiguous part of the row each, then all threads a part of the one in
// which the target is passed; the one in whose part it is looks for the column.
template <class E>
void device_find_masses(const E& exec, VectorView<FoundLogit, E> found,
                        MatrixView<const float, E> logits, VectorView<const float, E> max,
                        VectorView<const std::int64_t, E> target, int valid) {
  for_rows<std::int64_t>(
      "taper::find_masses", exec, logits.extent_int(0), KOKKOS_LAMBDA(const Team& team) {
        const int r = team.league_rank(), threads = team.team_size(), me = team.team_rank();
        const std::int64_t wanted = target(r);
        if (wanted < 0) {
          if (me == 0) found(r) = {-1, minus_infinity()};
          return;
        }
        Scratch scratch(team);
        auto* sums = scratch.take<std::int64_t>(threads + (threads + 31) / 32);
        auto* passed = scratch.take<std::int64_t>(2);  // the group, and what is left of the target
        const float top = max(r);
        const int lanes = threads < 32 ? threads : 32, groups = threads / lanes;
        const int part = (valid + groups - 1) / groups;
        const auto begin_of = [&](int group) {
          return group * part < valid ? group * part : valid;
        };
        const int first = begin_of(me / lanes), end = begin_of(me / lanes + 1);
        std::int64_t sum = 0;
        read_ahead(
            first + me % lanes, end, lanes, [&](const int c) { return logits(r, c); },
            [&](int, const float logit) { sum += device_mass(logit, top); });
        const TeamPrefix rough = team_prefix(team, sums, sum);
        if (wanted >= rough.all) {
          if (me == 0) found(r) = {-1, minus_infinity()};
          return;
        }
        // Sums of lanes are not those of contiguous columns, but those of groups are.
        if (me % lanes == 0) {
          std::int64_t of_group = 0;
          for (int lane = 0; lane < lanes; ++lane) of_group += sums[me + lane];
          if (wanted >= rough.before && wanted < rough.before + of_group) {
            passed[0] = me / lanes;
            passed[1] = wanted - rough.before;
          }
        }
        team.team_barrier();
        const int group = static_cast<int>(passed[0]);
        const int width = (part + threads - 1) / threads, group_end = begin_of(group + 1);
        int c = begin_of(group) + me * width;
        c = c < group_end ? c : group_end;
        const int stop = c + width < group_end ? c + width : group_end;
        sum = 0;
        for (int i = c; i < stop; ++i) sum += device_mass(logits(r, i), top);
        std::int64_t left = passed[1];
        team.team_barrier();
        left -= team_prefix(team, sums, sum).before;
        if (left < 0 || left >= sum) return;
        for (left -= device_mass(logits(r, c), top); left >= 0;)
          left -= device_mass(logits(r, ++c), top);
        found(r) = {c, logits(r, c)};
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
        const float top = max(r);
        team_read(
            team, valid, [&](const int c) { return logits(r, c); },
            [&](const int c, const float logit) {
              if (c < first && logit == top) first = c;
            });
        Scratch scratch(team);
        first = team_join(team, scratch.take<std::int32_t>(team.team_size()), first,
                          [](const std::int32_t a, const std::int32_t b) { return b < a ? b : a; });
        once(team, [&] { column(r) = first < valid ? first : -1; });
      });
}

// Blocks of sixteen, each by its tree and rounded: their sum is exact, whoever adds them.
template <class E>
void device_sum_weighted_logits(const E& exec, VectorView<std::int64_t, E> weighted,
                                MatrixView<const float, E> logits, VectorView<const float, E> max,
                                int valid) {
  for_rows<std::int64_t>(
      "taper::sum_weighted_logits", exec, logits.extent_int(0), KOKKOS_LAMBDA(const Team& team) {
        const int r = team.league_rank(), blocks = (valid + kDeviceLanes - 1) / kDeviceLanes;
        std::int64_t sum = 0;
        team_for(team, blocks, [&](const int b) {
          float lanes[kDeviceLanes] = {};
          const int begin = b * kDeviceLanes;
          for (int i = 0; i < kDeviceLanes && begin + i < valid; ++i) {
            const float distance = logits(r, begin + i) - max(r);
            const float centred = distance > -200.0f ? distance : -200.0f;
            lanes[i] = device_exp(centred) * centred;
          }
          sum += static_cast<std::int64_t>(Kokkos::nearbyint(device_sum_lanes(lanes) * kMassOne));
        });
        Scratch scratch(team);
        sum = team_join(team, scratch.take<std::int64_t>(team.team_size()), sum,
                        [](const std::int64_t a, const std::int64_t b) { return a + b; });
        once(team, [&] { weighted(r) = sum; });
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
  const int columns = logits.extent_int(1);
  const float inverse = 1.0f / temperature;
  for_rows<float>(
      "taper::logit_gradients", exec, logits.extent_int(0), KOKKOS_LAMBDA(const Team& team) {
        const int r = team.league_rank(), wanted = target(r);
        const LogitSlope s = slopes(r);
        team_read(
            team, valid, [&](const int c) { return logits(r, c); },
            [&](const int c, const float logit) {
              const float distance = logit - s.lse;
              const float log_p = distance > -200.0f ? distance : -200.0f;
              float slope = device_exp(log_p) *
                            Kokkos::fma(-s.by_entropy, log_p + s.entropy, -s.by_log_prob) * inverse;
              if (c == wanted) slope += s.by_log_prob * inverse;
              logits(r, c) = slope;
            });
        team_for(team, columns - valid, [&](const int c) { logits(r, valid + c) = 0.0f; });
      });
}

}  // namespace taper::detail
