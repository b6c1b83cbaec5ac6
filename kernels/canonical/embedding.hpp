// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace taper::canonical {

// gradient (vocab, h) += rows of dy in ascending order.
inline void embed_backward(float* gradient, const float* dy, const std::int32_t* ids, int rows,
                           int h) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < h; ++c) gradient[std::int64_t{ids[r]} * h + c] += dy[r * h + c];
}

}  // namespace taper::canonical
