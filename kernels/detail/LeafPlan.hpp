// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>
#include <algorithm>

#include "base/Error.hpp"
#include "kernels/detail/Product.hpp"

namespace taper::detail {

// The sums of leaves that wait to be added to later ones: the latest in so many registers, older
// ones in memory. The latest is always in a register.
template <int registers>
struct WaitingLeaves {
  int in_registers = 0, in_memory = 0;

  KOKKOS_INLINE_FUNCTION int all() const { return in_registers + in_memory; }
  // One more waits.
  KOKKOS_INLINE_FUNCTION void push() { ++(in_registers < registers ? in_registers : in_memory); }
  // The latest two become one.
  KOKKOS_INLINE_FUNCTION void join() { --(in_registers > 1 ? in_registers : in_memory); }
};

// How a block adds the leaves of a product: in segments at the same time, each of which leaves one
// sum if there are several. Small enough to be a kernel's argument.
struct LeafPlan {
  static constexpr int kMostLeaves = 6144, kMostSegments = 8;

  int segments = 1;
  int begin[kMostSegments + 1] = {};  // the leaves of segment s are [begin[s], begin[s + 1])
  unsigned char additions[kMostSegments] = {};  // after pushing the sum of segment s
  int waiting = 0;  // sums of a segment that wait at once, at most, less those in registers
  unsigned char after[kMostLeaves / 2] = {};  // program[leaf], four bits each

  KOKKOS_INLINE_FUNCTION int begin_of(int segment) const { return begin[segment]; }
  KOKKOS_INLINE_FUNCTION int additions_after(int leaf) const {
    return after[leaf / 2] >> leaf % 2 * 4 & 15;
  }
};

// In `segments` segments of about the same length; in one if those are not nodes of the tree.
template <int registers>
LeafPlan leaf_plan(const ProductArgs& args, int segments) {
  TAPER_VALIDATE(args.leaves <= LeafPlan::kMostLeaves, "products on tensor cores have at most "
                                                           << LeafPlan::kMostLeaves
                                                           << " leaves (here " << args.leaves
                                                           << "); use f32 arithmetic");
  if (args.partials > 1) segments = 1;
  LeafPlan plan;
  plan.segments = segments;
  for (int s = 0; s <= segments; ++s) plan.begin[s] = args.leaves * s / segments;
  for (int s = 0; s < segments; ++s) {
    WaitingLeaves<registers> waiting;
    for (int leaf = plan.begin[s]; leaf < plan.begin[s + 1]; ++leaf) {
      const int all = args.program[leaf], own = std::min(all, waiting.all());
      const bool is_last = leaf + 1 == plan.begin[s + 1];
      if (own == 0) waiting.push();
      for (int n = 1; n < own; ++n) waiting.join();
      plan.waiting = std::max(plan.waiting, waiting.in_memory);
      plan.after[leaf / 2] |= static_cast<unsigned char>(all << leaf % 2 * 4);
      if (is_last) plan.additions[s] = static_cast<unsigned char>(all - own);
      if (segments > 1 && ((all > own && !is_last) || (is_last && waiting.all() > 1)))
        return leaf_plan<registers>(args, 1);
    }
    if (segments > 1 && waiting.all() == 0)
      return leaf_plan<registers>(args, 1);  // fewer leaves than segments
  }
  return plan;
}

}  // namespace taper::detail
