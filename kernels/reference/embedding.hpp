// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/reference/Matrix.hpp"

namespace taper::reference {

// Rows of the table (vocab, h) by token id.
inline Matrix embed(const Matrix& table, const std::vector<std::int32_t>& ids) {
  Matrix y(static_cast<int>(ids.size()), table.columns);
  for (int r = 0; r < y.rows; ++r)
    for (int c = 0; c < y.columns; ++c) y(r, c) = table(ids[r], c);
  return y;
}

inline Matrix embed_backward(const Matrix& dy, const std::vector<std::int32_t>& ids, int vocab) {
  Matrix gradient(vocab, dy.columns);
  for (int r = 0; r < dy.rows; ++r)
    for (int c = 0; c < dy.columns; ++c) gradient(ids[r], c) += dy(r, c);
  return gradient;
}

}  // namespace taper::reference
