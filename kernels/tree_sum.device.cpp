// SPDX-License-Identifier: Apache-2.0
#include "kernels/tree_sum.hpp"

#include "kernels/detail/DeviceLaunch.hpp"
#include "kernels/detail/TreeProgram.hpp"

namespace taper {

void sum_tree(const CudaExec& exec, VectorView<float, CudaExec> out,
              MatrixView<const float, CudaExec> values, std::span<const int> list) {
  TAPER_EXPECT(values.extent(0) == list.size() && values.extent(1) == out.size());
  const detail::TreeProgram program = detail::tree_program(list);
  detail::device_for_each(
      "taper::sum_tree", exec, static_cast<std::int64_t>(out.size()),
      KOKKOS_LAMBDA(const std::int64_t element) {
        out(element) = program.run([&](int i) { return values(i, element); });
      });
}

}  // namespace taper
