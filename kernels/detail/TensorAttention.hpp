// SPDX-License-Identifier: Apache-2.0
//
// Attention over pages of bf16 on tensor cores, in the order of canonical/attention.hpp with
// canonical::TensorChain.
#pragma once

#include "kernels/Exec.hpp"
#include "kernels/detail/Attention.hpp"

namespace taper::detail {

// Segments of one launch, the longest of which has so many tokens.
struct TensorGrid {
  const SegmentArgs* segments;
  int count, longest;
};

void tensor_attention(const CudaExec& exec, const AttentionArgs& args, const TensorGrid& grid);
void tensor_attention_backward(const CudaExec& exec, const AttentionBackwardArgs& args,
                               const TensorGrid& grid);

}  // namespace taper::detail
