// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding (Su et al., 2021) in the half-split form of Hugging Face checkpoints:
// dimensions i and i + head_dim / 2 are one pair.
#pragma once

#include <cmath>

#include "kernels/reference/Matrix.hpp"

namespace taper::reference {

// Radians per position of each pair.
inline Vector rope_frequencies(int head_dim, double theta) {
  Vector f(head_dim / 2);
  for (int i = 0; i < head_dim / 2; ++i) f[i] = std::pow(theta, -2.0 * i / head_dim);
  return f;
}

// Linear scaling: positions are divided by the factor.
inline Vector rope_frequencies_linear(int head_dim, double theta, double factor) {
  Vector f = rope_frequencies(head_dim, theta);
  for (double& value : f) value /= factor;
  return f;
}

// Llama 3: wavelengths beyond the old context are stretched by the factor, short ones stay, those
// between are mixed.
inline Vector rope_frequencies_llama3(int head_dim, double theta, double factor, double low_factor,
                                      double high_factor, double old_context) {
  Vector f = rope_frequencies(head_dim, theta);
  for (double& value : f) {
    const double turns = old_context * value / (2.0 * M_PI);  // within the old context
    if (turns >= high_factor) continue;
    const double keep =
        turns <= low_factor ? 0.0 : (turns - low_factor) / (high_factor - low_factor);
    value = keep * value + (1.0 - keep) * value / factor;
  }
  return f;
}

// One head (rows of x) at each row's position; direction -1 rotates back, which is the gradient.
inline Matrix rotate(const Matrix& x, const Vector& positions, const Vector& frequencies,
                     double direction = 1.0) {
  Matrix y(x.rows, x.columns);
  const int half = x.columns / 2;
  for (int r = 0; r < x.rows; ++r)
    for (int i = 0; i < half; ++i) {
      const double angle = direction * positions[r] * frequencies[i];
      y(r, i) = x(r, i) * std::cos(angle) - x(r, half + i) * std::sin(angle);
      y(r, half + i) = x(r, half + i) * std::cos(angle) + x(r, i) * std::sin(angle);
    }
  return y;
}

}  // namespace taper::reference
