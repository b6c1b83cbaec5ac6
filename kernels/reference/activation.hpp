// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "kernels/reference/Matrix.hpp"

namespace taper::reference {

// silu(gate) * up, elementwise (Shazeer, 2020).
inline double swiglu(double gate, double up) {
  return gate / (1.0 + std::exp(-gate)) * up;
}

struct SwigluGradient {
  double dgate, dup;
};

inline SwigluGradient swiglu_backward(double dy, double gate, double up) {
  const double sigmoid = 1.0 / (1.0 + std::exp(-gate));
  return {dy * up * sigmoid * (1.0 + gate * (1.0 - sigmoid)), dy * gate * sigmoid};
}

}  // namespace taper::reference
