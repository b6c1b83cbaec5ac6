// SPDX-License-Identifier: Apache-2.0
//
// Attention over pages of bf16 on tensor cores, in the order of canonical/attention.hpp with
// canonical::TensorChain.
#pragma once

#include "kernels/Exec.hpp"
#include "kernels/detail/attention_args.hpp"

namespace taper::detail {

void tensor_attention(const CudaExec& exec, const AttentionArgs& args, const AttentionGrid& grid);
void tensor_attention_backward(const CudaExec& exec, const AttentionBackwardArgs& args,
                               const AttentionGrid& grid);

}  // namespace taper::detail
