// SPDX-License-Identifier: Apache-2.0
//
// Included once for each instruction set. What is not a template over the set S must be static: of
// an inline function with external linkage the linker keeps one copy for all, and that may be the
// one with instructions that the processor lacks. The test kernels.linkage looks for such.
#pragma once

#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/attention.inl.hpp"
#include "kernels/detail/attention_backward.inl.hpp"
#include "kernels/detail/dot_product.inl.hpp"
#include "kernels/detail/product.inl.hpp"
#include "kernels/detail/rows.inl.hpp"
#include "kernels/detail/tile_product.inl.hpp"

namespace taper::detail {

template <class S>
constexpr HostOps make_host_ops() {
  return {S::kSet,
          product_task<S>,
          tile_product_task<S>,
          make_pair_ops<S>(),
          attention_task<S>,
          attention_chunks_task<S>,
          merge_chunks_task<S>,
          attention_backward_task<S>,
          rmsnorm_row<S>,
          rmsnorm_backward_row<S>,
          column_sums<S>,
          rope_head<S>,
          swiglu_row<S>,
          swiglu_backward_row<S>,
          add_row<S>,
          scale_and_max_row<S>,
          mass_row<S>,
          masses_row<S>,
          find_mass_row<S>,
          weighted_logit_row<S>,
          logit_gradient_row<S>,
          adamw_row<S>,
          sum_squares_row<S>};
}

}  // namespace taper::detail
