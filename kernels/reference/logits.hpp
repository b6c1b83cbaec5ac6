// SPDX-License-Identifier: Apache-2.0
//
// What follows from one row of raw logits at a temperature.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/reference/Matrix.hpp"

namespace taper::reference {

inline double log_sum_exp(const Vector& raw, double temperature) {
  double top = -INFINITY, sum = 0.0;
  for (const double l : raw) top = std::max(top, l / temperature);
  for (const double l : raw) sum += std::exp(l / temperature - top);
  return top + std::log(sum);
}

inline double log_prob(const Vector& raw, double temperature, int id) {
  return raw[id] / temperature - log_sum_exp(raw, temperature);
}

inline double entropy(const Vector& raw, double temperature) {
  const double lse = log_sum_exp(raw, temperature);
  double sum = 0.0;
  for (const double l : raw) sum -= std::exp(l / temperature - lse) * (l / temperature - lse);
  return sum;
}

// The gradient by the raw logits of by_log_prob * log_prob(target) + by_entropy * entropy.
inline Vector logit_gradient(const Vector& raw, double temperature, int target, double by_log_prob,
                             double by_entropy) {
  const double lse = log_sum_exp(raw, temperature), h = entropy(raw, temperature);
  Vector g(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const double log_p = raw[i] / temperature - lse, p = std::exp(log_p);
    const double hit = static_cast<int>(i) == target ? 1.0 : 0.0;
    g[i] = (by_log_prob * (hit - p) - by_entropy * p * (log_p + h)) / temperature;
  }
  return g;
}

// Integer weights round(2^40 exp(l / T - max)) of the ids of a row.
inline std::vector<std::int64_t> masses(const Vector& raw, double temperature) {
  double top = -INFINITY;
  for (const double l : raw) top = std::max(top, l / temperature);
  std::vector<std::int64_t> m;
  for (const double l : raw) m.push_back(std::llrint(0x1p40 * std::exp(l / temperature - top)));
  return m;
}

// The first id at which the running sum of masses passes target; -1 if none does.
inline int find_mass(const std::vector<std::int64_t>& masses, std::int64_t target) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < masses.size(); ++i)
    if ((sum += masses[i]) > target) return static_cast<int>(i);
  return -1;
}

}  // namespace taper::reference
