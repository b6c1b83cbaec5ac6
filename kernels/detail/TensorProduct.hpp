// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/Exec.hpp"
#include "kernels/detail/Product.hpp"

namespace taper::detail {

// A product with packed bf16 weights on tensor cores, with or without leaves.
void tensor_product(const CudaExec& exec, const ProductArgs& args);
// Two without leaves, of the same inputs.
void tensor_product_both(const CudaExec& exec, const ProductArgs& first, const ProductArgs& second);

// Rounds n floats into `to`, which is returned.
void* round_to_bf16(const CudaExec& exec, void* to, const float* from, std::int64_t n);

// A sum of outer products, whose operands are matrices of f32 values.
void tensor_outer_product(const CudaExec& exec, const ProductArgs& args);

}  // namespace taper::detail
