// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding.hpp"

#include "base/Error.hpp"

namespace taper {

template <class E>
void embed(const E& exec, MatrixView<float, E> y, VectorView<const std::int32_t, E> ids,
           const PackedMatrix& table, std::int32_t vocab_begin) {
  TAPER_EXPECT(y.extent_int(1) == table.k && y.extent(0) == ids.extent(0));
  Kokkos::parallel_for("taper::embed", Kokkos::RangePolicy<E>(exec, 0, y.extent_int(0)),
                       [=](const int row) {
                         const std::int32_t local = ids(row) - vocab_begin;
                         if (local < 0 || local >= table.columns) return;
                         const std::int64_t first =
                             local / kPanelColumns * table.panel_stride + local % kPanelColumns;
                         for (int k = 0; k < table.k; ++k) {
                           const std::int64_t at = first + std::int64_t{k} * kPanelColumns;
                           y(row, k) = table.type == WeightType::kBf16
                                           ? to_float(static_cast<const bf16*>(table.data)[at])
                                           : static_cast<const float*>(table.data)[at];
                         }
                       });
}

template <class E>
void embed_backward(const E& exec, MatrixView<float, E> gradient, MatrixView<const float, E> dy,
                    VectorView<const std::int32_t, E> ids, std::int32_t vocab_begin) {
  constexpr int kStrip = 64;  // columns per task: a row's additions stay in the order of tokens
  const int columns = dy.extent_int(1), rows = dy.extent_int(0);
  Kokkos::parallel_for(
      "taper::embed_backward", Kokkos::RangePolicy<E>(exec, 0, (columns + kStrip - 1) / kStrip),
      [=](const int s) {
        const int begin = s * kStrip, end = begin + kStrip < columns ? begin + kStrip : columns;
        for (int row = 0; row < rows; ++row) {
          const std::int32_t local = ids(row) - vocab_begin;
          if (local < 0 || local >= gradient.extent_int(0)) continue;
          for (int c = begin; c < end; ++c) gradient(local, c) += dy(row, c);
        }
      });
}

template void embed<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                              VectorView<const std::int32_t, HostExec>, const PackedMatrix&,
                              std::int32_t);
template void embed_backward<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                                       MatrixView<const float, HostExec>,
                                       VectorView<const std::int32_t, HostExec>, std::int32_t);

}  // namespace taper
