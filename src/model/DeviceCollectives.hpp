// SPDX-License-Identifier: Apache-2.0
//
// Collectives on memory of Exec. On the host they are those of comm; on a device the values travel
// through the host, in the same order, so that results have the same bits.
#pragma once

#include <cstdint>
#include <span>

#include "comm/TreeReduce.hpp"
#include "kernels/Views.hpp"

namespace taper {

// Element-wise largest over the ranks, in place. Not for NaN. Collective over `group`.
void all_reduce_max(const Exec& exec, const Group& group, FloatVector data);
// Element-wise sum over the ranks in the fixed order of Collectives.hpp, in place. Collective over
// `group`.
void all_reduce_ordered_sum(const Exec& exec, const Group& group, FloatVector data);

// out = elements [offsets[rank], offsets[rank + 1]) of the sum of `in` over the ranks, see
// Collectives.hpp. Collective over `group`.
void reduce_scatter_ordered_sum(const Exec& exec, const Group& group, FloatVector out,
                                ConstFloatVector in, std::span<const std::int64_t> offsets);

// out (rows, cols) = the sum of the partials of all ranks, see TreeReducer::sum. Collective over
// `group`.
void tree_sum(const Exec& exec, const TreeReducer& reducer, const Group& group, FloatMatrix out,
              const float* partials, float* workspace);

}  // namespace taper
