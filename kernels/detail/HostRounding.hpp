// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/Exec.hpp"
#include "kernels/detail/Product.hpp"

namespace taper::detail {

// In an arithmetic that rounds operands: round those of a product to bf16 before it, all threads
// together, where many tasks would else round them again and exec.rounding has room for them, and
// change args so that tasks read them there: the rows of A, or both operands of a gradient of
// weights.
void round_rows(const HostExec& exec, ProductArgs& args);
void round_outer(const HostExec& exec, ProductArgs& args);

}  // namespace taper::detail
