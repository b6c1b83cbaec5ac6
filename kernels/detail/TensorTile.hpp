// SPDX-License-Identifier: Apache-2.0
//
// How a product on tensor cores is divided: the tiles of a warp, the warps of a block, and what a
// block has in shared memory.
#pragma once

#include <type_traits>

#include "kernels/detail/LeafPlan.hpp"
#include "kernels/detail/Product.hpp"

namespace taper::detail {

// What becomes of the sums of a block.
enum class Result { kProduct, kSwiglu, kLeaves };

// A product without leaves is one segment of one leaf.
struct OneLeaf {
  static constexpr int segments = 1;
  KOKKOS_INLINE_FUNCTION int begin_of(int segment) const { return segment; }
};
template <Result result>
using PlanOf = std::conditional_t<result == Result::kLeaves, LeafPlan, OneLeaf>;

// How wide the blocks of a product are. Wide ones read activations less often, narrow ones are
// more.
enum class Width { kNarrow, kWide };

// The tiles of a warp and the warps of a block of so many rows, and the shared memory of a stage of
// one segment. Columns are those of each panel; SwiGLU has panels of gates and of their ups, and a
// wide block twice as many panels.
template <int rows, Result result, Width width>
struct Tile {
  static constexpr int kRows = rows;
  static constexpr bool kIsRounded = false;  // activations in memory
  static constexpr bool kIsWide = width == Width::kWide, kIsTall = rows == 128;
  static constexpr int kRowTiles = rows >= 64 ? 4 : rows == 8 ? 1 : 2;
  static constexpr int kRowWarps = rows / 8 / kRowTiles;
  static constexpr int kColumnTiles = rows >= 32 && !(kIsWide && !kIsTall) ? 2 : 1;
  static constexpr int kColumnWarps = kIsTall || !kIsWide ? 2 : 4;
  static constexpr int kWarps = kRowWarps * kColumnWarps;  // of a segment, as all below
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kColumns = 16 * kColumnTiles * kColumnWarps;
  static constexpr int kPanels = result == Result::kLeaves ? 1
                                 : result == Result::kSwiglu || kIsTall
                                     ? (kIsWide && !kIsTall ? 4 : 2)
                                     : (kIsWide ? 2 : 1);
  static constexpr int kOwnPanels = kPanels;  // of a warp
  static constexpr int kMostSegments = result != Result::kLeaves ? 1 : rows >= 32 ? 2 : 8;
  // How many sums of leaves wait in registers, and how many more in shared and in local memory.
  static constexpr int kRegisters = 1, kMostShared = LeafPlan::kMostLeaves, kMostLocal = 0;
  // Inputs of a stage, none of which belongs to two leaves.
  static constexpr int kDepth = rows <= 16 && result == Result::kProduct ? 128 : 64;
  static constexpr int kStageBytes = kPanels * kDepth * kColumns * 2 + rows * kDepth * 4;
  // Being copied or multiplied: as many as let blocks fill the 227 KB of a multiprocessor of sm_90.
  static constexpr int kStages = result == Result::kSwiglu && rows <= 16 ? 5
                                 : result == Result::kLeaves || kStageBytes == (32 << 10) ||
                                         kStageBytes > (48 << 10)
                                     ? 3
                                     : 4;
};

// The same where activations are bf16 in memory: a warpgroup has all 64 columns of a panel, and in
// a block of 128 rows two of its four panels. Of the blocks of 64 rows with leaves two fit a
// multiprocessor, so that one multiplies while the other adds.
template <Result result>
struct WarpgroupTile {
  static constexpr bool kIsRounded = true, kHasLeaves = result == Result::kLeaves;
  static constexpr int kRows = kHasLeaves ? 64 : 128;
  static constexpr int kRowTiles = kRows / 8, kRowWarps = 1;
  static constexpr int kColumnTiles = 1, kColumnWarps = 4, kColumns = 64;
  static constexpr int kPanels = kHasLeaves ? 1 : 4, kOwnPanels = kHasLeaves ? 1 : 2;
  static constexpr int kWarps = kColumnWarps * (kPanels / kOwnPanels), kThreads = 32 * kWarps;
  static constexpr int kMostSegments = kHasLeaves ? 2 : 1;
  static constexpr int kRegisters = 4, kMostShared = 4, kMostLocal = 4;
  static constexpr int kDepth = 64, kStages = kHasLeaves ? 3 : 4;
  static constexpr int kStageBytes = 2 * kDepth * (kPanels * kColumns + kRows);
};

}  // namespace taper::detail
