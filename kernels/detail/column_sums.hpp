// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/Launch.hpp"
#include "kernels/gradient.hpp"

namespace taper::detail {

// Adds the sums over rows of each column to `sums`.
template <class E>
void add_column_sums(const char* label, const E& exec, const GradientView& sums,
                     const ColumnArgs& args) {
  const auto task = host_ops().column_sums;
  const int columns = static_cast<int>(sums.columns);
  for_each(label, exec, (columns + 15) / 16, [=](const int s) {
    const int first = 16 * s, width = columns - first < 16 ? columns - first : 16;
    ColumnArgs strip = args;
    strip.a += first;
    if (strip.b != nullptr) strip.b += first;
    if (!sums.is_fixed()) return task(sums.f32() + first, strip, width);
    float chains[16] = {};
    task(chains, strip, width);
    for (int c = 0; c < width; ++c) sums.fixed()[first + c] += to_fixed(chains[c]);
  });
}

}  // namespace taper::detail
