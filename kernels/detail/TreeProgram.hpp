// SPDX-License-Identifier: Apache-2.0
//
// The program of a reduction tree (shard/ReductionTree.hpp) as an argument of a kernel.
#pragma once

#include <Kokkos_Macros.hpp>
#include <span>

#include "base/Error.hpp"

namespace taper::detail {

inline constexpr int kMostTreeValues = 512;
inline constexpr int kMostTreeDepth = 16;

struct TreeProgram {
  int size = 0;
  unsigned char additions[kMostTreeValues] = {};

  // The sum of value(i) for all i in the order of the tree.
  template <class Value>
  KOKKOS_INLINE_FUNCTION float run(const Value& value) const {
    float stack[kMostTreeDepth];
    int top = 0;
    for (int i = 0; i < size; ++i) {
      stack[top++] = value(i);
      for (int n = additions[i]; n > 0; --n, --top) stack[top - 2] += stack[top - 1];
    }
    return stack[0];
  }
};

// Throws Error if it is too long.
inline TreeProgram tree_program(std::span<const int> list) {
  TAPER_INSIST(list.size() <= kMostTreeValues, "a sum of "
                                                   << list.size() << " partial results (at most "
                                                   << kMostTreeValues << " are added at once)");
  TreeProgram program;
  int depth = 0;
  for (const int additions : list) {
    program.additions[program.size++] = static_cast<unsigned char>(additions);
    TAPER_INSIST(++depth <= kMostTreeDepth && additions < depth,
                 "the tree of a sum is no tree, or deeper than " << kMostTreeDepth);
    depth -= additions;
  }
  TAPER_INSIST(depth == 1, "the tree of a sum has " << depth << " roots");
  return program;
}

}  // namespace taper::detail
