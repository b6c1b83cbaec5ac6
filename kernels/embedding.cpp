// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding.hpp"

#include "base/Error.hpp"
#include "kernels/detail/Launch.hpp"
#include "kernels/detail/PairPanel.hpp"

namespace taper {

template <class E>
void embed(const E& exec, MatrixView<float, E> y, VectorView<const std::int32_t, E> ids,
           const PackedMatrix& table, std::int32_t vocab_begin) {
  TAPER_EXPECT(y.extent_int(1) == table.k && y.extent(0) == ids.size());
  const bool in_pairs = rounds_operands(exec.arithmetic) && table.type == WeightType::kBf16;
  detail::for_each("taper::embed", exec, y.extent_int(0), [=](const int row) {
    const std::int32_t local = ids(row) - vocab_begin;
    if (local < 0 || local >= table.columns) return;
    const std::int64_t panel = local / kPanelColumns * table.panel_stride;
    const int column = local % kPanelColumns;
    for (int k = 0; k < table.k; ++k) {
      const std::int64_t at = panel + (in_pairs ? detail::pair_offset(k, column, table.k)
                                                : std::int64_t{k} * kPanelColumns + column);
      y(row, k) = table.type == WeightType::kBf16
                      ? to_float(static_cast<const bf16*>(table.data)[at])
                      : static_cast<const float*>(table.data)[at];
    }
  });
}

template void embed<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                              VectorView<const std::int32_t, HostExec>, const PackedMatrix&,
                              std::int32_t);

}  // namespace taper
