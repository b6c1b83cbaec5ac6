// SPDX-License-Identifier: Apache-2.0
//
// Sums of partial results in the order of a reduction tree, for devices; on the host
// comm/TreeReduce.hpp adds them.
#pragma once

#if defined(TAPER_CUDA)
#include <span>

#include "kernels/Views.hpp"

namespace taper {

// out (n) = what is left when the program of a tree (shard/ReductionTree.hpp, at most 512 values)
// has run on values (program.size(), n): value i is pushed on a stack, then program[i] times the
// two top values are replaced by their sum. They must not overlap.
void sum_tree(const CudaExec& exec, VectorView<float, CudaExec> out,
              MatrixView<const float, CudaExec> values, std::span<const int> program);

}  // namespace taper
#endif
