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

// Whether activations are bf16 in memory.
enum class Rounded { kNo, kYes };

// The tiles of a warp and the warps of a block of so many rows, and the shared memory of a stage of
// one segment. Columns are those of each panel; SwiGLU has panels of gates and of their ups, and a
// wide block twice as many panels.
template <int rows, Result result, Width width, Rounded rounded = Rounded::kNo>
struct Tile {
  static constexpr bool kIsWide = width == Width::kWide, kIsTall = rows == 128,
                        kIsRounded = rounded == Rounded::kYes;
  // A warpgroup has all 64 columns of a panel.
  static constexpr int kRowWarps = kIsRounded ? 1 : rows >= 64 ? rows / 32 : rows == 32 ? 2 : 1;
  static constexpr int kRowTiles = rows / 8 / kRowWarps;
  static constexpr int kColumnTiles = rows >= 32 && !(kIsWide && !kIsTall) && !kIsRounded ? 2 : 1;
  static constexpr int kColumnWarps = kIsRounded || (kIsWide && !kIsTall) ? 4 : 2;
  static constexpr int kPanelWarps = kIsRounded && result != Result::kLeaves ? 2 : 1;
  static constexpr int kWarps = kRowWarps * kColumnWarps * kPanelWarps;  // of a segment, as below
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kColumns = 16 * kColumnTiles * kColumnWarps;
  static constexpr int kPanels = result == Result::kLeaves   ? 1
                                 : kIsTall                   ? (kIsRounded ? 4 : 2)
                                 : result == Result::kSwiglu ? (kIsWide ? 4 : 2)
                                                             : (kIsWide ? 2 : 1);
  static constexpr int kOwnPanels = kPanels / kPanelWarps;  // of a warp
  static constexpr int kMostSegments = result != Result::kLeaves || kIsTall ? 1
                                       : rows >= 32                         ? 2
                                                                            : 8;
  // In which sums of leaves wait, and how many more have a place in shared memory: with those of
  // many rows, two blocks still fit a multiprocessor. Older ones wait in local memory.
  static constexpr int kRegisters = kIsRounded ? 4 : 1;
  static constexpr int kMostShared = kIsRounded ? 4 : LeafPlan::kMostLeaves;
  static constexpr int kMostLocal = kIsRounded ? 4 : 0;
  // Inputs of a stage, none of which belongs to two leaves.
  static constexpr int kDepth = rows <= 16 && result == Result::kProduct ? 128 : 64;
  static constexpr int kStageBytes =
      kPanels * kDepth * kColumns * 2 + rows * kDepth * (kIsRounded ? 2 : 4);
  // Being copied or multiplied: as many as let blocks fill the 227 KB of a multiprocessor of sm_90.
  static constexpr int kStages = result == Result::kSwiglu && rows <= 16 ? 5
                                 : result == Result::kLeaves || kStageBytes == (32 << 10) ||
                                         kStageBytes > (48 << 10)
                                     ? 3
                                     : 4;
};

}  // namespace taper::detail
