// SPDX-License-Identifier: Apache-2.0
//
// Statistics of rows of logits over one shard of the vocabulary. The weight of an id is the integer
// round(2^40 * exp(logit - max)): sums of weights are exact in any order, so log-probs and samples
// have the same bits for any tensor-parallel degree.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/Views.hpp"

namespace taper {

// logits /= temperature in place (ids from `valid` on become -inf); max (rows) of each row.
template <class E>
void scale_logits(const E& exec, MatrixView<float, E> logits, VectorView<float, E> max, int valid,
                  float temperature);

// mass (rows): summed integer weights of the valid columns relative to max; -1 if one is NaN.
template <class E>
void sum_masses(const E& exec, VectorView<std::int64_t, E> mass, MatrixView<const float, E> logits,
                VectorView<const float, E> max, int valid);

// weighted (rows): 2^40 times the sum of exp(l - max) (l - max), from which the entropy follows:
// rounded by blocks of 16 ids, so sums over shards are exact.
template <class E>
void sum_weighted_logits(const E& exec, VectorView<std::int64_t, E> weighted,
                         MatrixView<const float, E> logits, VectorView<const float, E> max,
                         int valid);

// Ids of a row by the highest bit of their mass: level j has masses from 2^(40 - j) on, level 0
// that of the largest logit. Ids without mass are in none.
inline constexpr int kMassLevels = 41;
struct MassLevel {
  std::int64_t ids = 0, mass = 0;  // their number, and the sum of their masses

  constexpr MassLevel& operator+=(const MassLevel& other) {
    ids += other.ids;
    mass += other.mass;
    return *this;
  }
};
constexpr std::int64_t least_mass(int level) {
  return std::int64_t{1} << (kMassLevels - 1 - level);
}

// levels (rows, kMassLevels), of rows without NaN.
template <class E>
void count_mass_levels(const E& exec, MatrixView<MassLevel, E> levels,
                       MatrixView<const float, E> logits, VectorView<const float, E> max,
                       int valid);

// A column of a shard with its logit and mass.
struct WeightedLogit {
  std::int32_t column = -1;
  float logit = -INFINITY;
  std::int64_t mass = 0;
};

// list: of each row the columns whose mass is at least least(r) > 0, from list(begin(r)) on, in any
// order. How many they are follows from the levels.
template <class E>
void list_weighted_logits(const E& exec, VectorView<WeightedLogit, E> list,
                          VectorView<const std::int64_t, E> begin,
                          VectorView<const std::int64_t, E> least,
                          MatrixView<const float, E> logits, VectorView<const float, E> max,
                          int valid);

// A column of a shard and its logit; column -1: none, as another shard owns the id.
struct FoundLogit {
  std::int32_t column = -1;
  float logit = -INFINITY;
};

// found (rows): for each row with 0 <= target < its local mass, the first column at which the
// running sum of weights passes target; none elsewhere.
template <class E>
void find_masses(const E& exec, VectorView<FoundLogit, E> found, MatrixView<const float, E> logits,
                 VectorView<const float, E> max, VectorView<const std::int64_t, E> target,
                 int valid);

// column (rows): the lowest valid column whose logit is max of its row, -1 if there is none.
template <class E>
void find_max(const E& exec, VectorView<std::int32_t, E> column, MatrixView<const float, E> logits,
              VectorView<const float, E> max, int valid);

// One element of a matrix of logits; column -1: none, as another shard owns the id.
struct LogitPlace {
  std::int32_t row = 0;
  std::int32_t column = -1;
};

// y (n): the logit at each place, -inf if there is none.
template <class E>
void pick_logits(const E& exec, VectorView<float, E> y, MatrixView<const float, E> logits,
                 VectorView<const LogitPlace, E> places);

// Multiplies negative logits at the places by the penalty and divides the others by it. No place is
// named twice.
template <class E>
void penalize_logits(const E& exec, MatrixView<float, E> logits,
                     VectorView<const LogitPlace, E> places, float penalty);

// The slopes of a loss by log-prob of the target token and by entropy, and the row's log-sum-exp
// and entropy.
struct LogitSlope {
  float lse = 0.0f;
  float entropy = 0.0f;
  float by_log_prob = 0.0f;
  float by_entropy = 0.0f;
};

// In place: logits (already divided by the temperature) -> gradient of the loss by the raw logits.
// target (rows): local column of the target token, or -1 if another shard owns it.
template <class E>
void logit_gradients(const E& exec, MatrixView<float, E> logits,
                     VectorView<const LogitSlope, E> slopes,
                     VectorView<const std::int32_t, E> target, int valid, float temperature);

// log(sum of exp) of a row from its maximum and its total mass over all shards.
float log_sum_exp(float max, std::int64_t total_mass);
// The log-prob of a logit: (l - max) - log(mass / 2^40), rounded once from double.
float log_prob(float logit, float max, std::int64_t total_mass);

}  // namespace taper
