// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/Exec.hpp"
#include "kernels/detail/Product.hpp"

namespace taper::detail {

// In Arithmetic::kBf16Dot: rounds operands to bf16 before the product, all threads together, where
// many tasks would else round them again and exec.rounding has room for them. Changes args so that
// tasks read them there.
void round_operands(const HostExec& exec, ProductArgs& args);

}  // namespace taper::detail
