// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "kernels/reference/Matrix.hpp"

namespace taper::reference {

struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.0;
};

struct AdamWState {
  double parameter = 0.0, first = 0.0, second = 0.0;
};

// Step t (from 1) of AdamW (Loshchilov and Hutter, 2019) on one parameter.
inline AdamWState adamw(AdamWState s, double gradient, int t, const AdamWOptions& o) {
  s.parameter -= o.lr * o.weight_decay * s.parameter;
  s.first = o.beta1 * s.first + (1.0 - o.beta1) * gradient;
  s.second = o.beta2 * s.second + (1.0 - o.beta2) * gradient * gradient;
  const double first = s.first / (1.0 - std::pow(o.beta1, t));
  const double second = s.second / (1.0 - std::pow(o.beta2, t));
  s.parameter -= o.lr * first / (std::sqrt(second) + o.eps);
  return s;
}

inline double sum_squares(const Vector& x) {
  double sum = 0.0;
  for (const double value : x) sum += value * value;
  return sum;
}

}  // namespace taper::reference
