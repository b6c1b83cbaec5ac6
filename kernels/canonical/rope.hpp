// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace taper::canonical {

// One head in place, products rounded before they are added; direction 1 or -1.
inline void rotate(float* x, const float* cosine, const float* sine, int head_dim,
                   float direction) {
  const int half = head_dim / 2;
  for (int i = 0; i < half; ++i) {
    const float a = x[i], b = x[half + i], s = direction * sine[i];
    x[i] = a * cosine[i] - b * s;
    x[half + i] = b * cosine[i] + a * s;
  }
}

}  // namespace taper::canonical
