// SPDX-License-Identifier: Apache-2.0
#include "kernels/tree_sum.hpp"

#include "base/Error.hpp"
#include "kernels/detail/DeviceLaunch.hpp"

namespace taper {
namespace {

constexpr int kMostValues = 256, kMostDepth = 16;

// A program as an argument of the kernel.
struct Program {
  int size = 0;
  unsigned char additions[kMostValues] = {};
};

Program program_of(std::span<const int> list) {
  TAPER_INSIST(list.size() <= kMostValues, "a sum of " << list.size()
                                                       << " partial results (at most "
                                                       << kMostValues << " are added at once)");
  Program program;
  int depth = 0;
  for (const int additions : list) {
    program.additions[program.size++] = static_cast<unsigned char>(additions);
    TAPER_EXPECT(++depth <= kMostDepth && additions < depth);
    depth -= additions;
  }
  TAPER_EXPECT(depth == 1);
  return program;
}

}  // namespace

void sum_tree(const CudaExec& exec, VectorView<float, CudaExec> out,
              MatrixView<const float, CudaExec> values, std::span<const int> list) {
  TAPER_EXPECT(values.extent(0) == list.size() && values.extent(1) == out.size());
  const Program program = program_of(list);
  detail::device_for_each(
      "taper::sum_tree", exec, static_cast<std::int64_t>(out.size()),
      KOKKOS_LAMBDA(const std::int64_t element) {
        float stack[kMostDepth];
        int top = 0;
        for (int i = 0; i < program.size; ++i) {
          stack[top++] = values(i, element);
          for (int n = program.additions[i]; n > 0; --n, --top) stack[top - 2] += stack[top - 1];
        }
        out(element) = stack[0];
      });
}

}  // namespace taper
