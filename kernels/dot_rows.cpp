// SPDX-License-Identifier: Apache-2.0
#include "kernels/dot_rows.hpp"

#include <algorithm>
#include <cmath>

#include "base/Error.hpp"
#include "kernels/detail/Launch.hpp"

namespace taper {

template <class E>
void dot_rows(const E& exec, VectorView<float, E> y, MatrixView<const float, E> x,
              VectorView<const float, E> w) {
  TAPER_EXPECT(y.size() == x.extent(0) && w.size() == x.extent(1));
  const int columns = x.extent_int(1);
  detail::for_each("taper::dot_rows", exec, x.extent_int(0), [=](const int r) {
    double sum = 0.0;
    for (int c = 0; c < columns; ++c)
      sum += static_cast<double>(x(r, c)) * static_cast<double>(w(c));
    y(r) = static_cast<float>(sum);
  });
}

template <class E>
void dot_rows_backward(const E& exec, MatrixView<float, E> dx, const GradientView& dw,
                       VectorView<const float, E> dy, MatrixView<const float, E> x,
                       VectorView<const float, E> w) {
  TAPER_EXPECT(dx.extent(0) == x.extent(0) && dx.extent(1) == x.extent(1) &&
               dy.size() == x.extent(0) && dw.size() == x.extent_int(1) && w.size() == x.extent(1));
  constexpr int kStrip = 64;  // columns per task: each column's chain stays in one
  const int columns = x.extent_int(1), rows = x.extent_int(0);
  detail::for_each(
      "taper::dot_rows_backward", exec, (columns + kStrip - 1) / kStrip, [=](const int s) {
        const int begin = s * kStrip, end = begin + kStrip < columns ? begin + kStrip : columns;
        float chains[kStrip] = {};
        if (!dw.is_fixed()) std::copy(dw.f32() + begin, dw.f32() + end, chains);
        for (int r = 0; r < rows; ++r)
          for (int c = begin; c < end; ++c) {
            chains[c - begin] = std::fma(dy(r), x(r, c), chains[c - begin]);
            dx(r, c) = dy(r) * w(c);
          }
        for (int c = begin; c < end; ++c) {
          if (dw.is_fixed())
            dw.fixed()[c] += to_fixed(chains[c - begin]);
          else
            dw.f32()[c] = chains[c - begin];
        }
      });
}

template void dot_rows<HostExec>(const HostExec&, VectorView<float, HostExec>,
                                 MatrixView<const float, HostExec>,
                                 VectorView<const float, HostExec>);
template void dot_rows_backward<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                                          const GradientView&, VectorView<const float, HostExec>,
                                          MatrixView<const float, HostExec>,
                                          VectorView<const float, HostExec>);

}  // namespace taper
