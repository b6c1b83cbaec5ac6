// SPDX-License-Identifier: Apache-2.0
//
// Collectives on memory of Exec. On the host they are those of comm; between devices values travel
// through NCCL if the group is connected (Group::devices), in small sums of partial results through
// windows if it has them (Group::windows), else through the host. All add in the same order, so
// results have the same bits.
#pragma once

#include <cstdint>
#include <span>

#include "comm/TreeReduce.hpp"
#include "kernels/Views.hpp"
#include "kernels/gradient.hpp"

namespace taper {

// out = the `in` of all ranks in rank order; counts[r] floats come from rank r. Collective over
// `group`.
void all_gather_v(const Exec& exec, const Group& group, FloatVector out, ConstFloatVector in,
                  std::span<const std::int64_t> counts);

// Element-wise largest over the ranks, in place. Not for NaN. Collective over `group`.
void all_reduce_max(const Exec& exec, const Group& group, FloatVector data);
// Element-wise sum over the ranks, in place, always through the host; of floats in the fixed order
// of Collectives.hpp.
// Collective over `group`.
void all_reduce_sum(const Exec& exec, const Group& group, const GradientView& sums);

// out = elements [offsets[rank], offsets[rank + 1]) of the sum of `in` over the ranks, which is of
// the same type; see Collectives.hpp. Between connected devices by way of `workspace`, which has
// exchange_floats(); a larger one, of one size on all ranks, needs fewer exchanges. Collective over
// `group`.
void reduce_scatter_sum(const Exec& exec, const Group& group, const GradientView& out,
                        const GradientView& in, std::span<const std::int64_t> offsets,
                        FloatVector workspace);
std::int64_t exchange_floats(const Group& group);

// out (rows, cols) = the sum of the partials of all ranks, see TreeReducer::sum. Collective over
// `group`.
void tree_sum(const Exec& exec, const TreeReducer& reducer, const Group& group, FloatMatrix out,
              const float* partials, float* workspace);
// out = x + that sum, for which `total` has room; out may be x. Collective over `group`.
void tree_sum_and_add(const Exec& exec, const TreeReducer& reducer, const Group& group,
                      FloatMatrix out, ConstFloatMatrix x, const float* partials, FloatMatrix total,
                      float* workspace);

}  // namespace taper
