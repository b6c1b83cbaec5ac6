// SPDX-License-Identifier: Apache-2.0
//
// A block of a product on tensor cores, in the order of canonical/tensor_core.hpp. Weights are the
// left operand of the tiles (16 columns), activations the right one (8 rows), so that few rows
// waste little. Both are copied into shared memory some stages ahead; activations are rounded as
// they enter a tile, or, where there are many rows and memory for it, before: those are multiplied
// by warpgroups, which need both operands as bf16.
//
// Leaves are shared out over warps as well: a block has the same columns several times, each time
// for a segment of the leaves, whose sums are a node of the tree; the nodes are added at the end.
#pragma once

#include "kernels/detail/DeviceMath.hpp"
#include "kernels/detail/StageCopies.hpp"
#include "kernels/detail/TensorCore.hpp"
#include "kernels/detail/TensorTile.hpp"
#include "kernels/detail/WaitingSums.hpp"
#include "kernels/detail/Warpgroup.hpp"

namespace taper::detail {

#if defined(__CUDA_ARCH__)

template <Result result, class T>
class ProductBlock {
  static constexpr int kDepth = T::kDepth;
  static constexpr int kParts = kPanel / T::kColumns;            // blocks of a panel
  static constexpr int kTiles = T::kColumnTiles * T::kRowTiles;  // of a warp and panel
  using Waiting = WaitingSums<T, kTiles>;
  using Sums = typename Waiting::Sums;

 public:
  using Local = typename Waiting::Local;  // of a thread

  // `part`: which of the blocks that share out the columns.
  __device__ ProductBlock(const ProductArgs& args, const PlanOf<result>& plan, int part,
                          char* shared, Local& local)
      : args_(args),
        plan_(plan),
        shared_(shared),
        segment_(T::kMostSegments == 1 ? 0 : uniform(threadIdx.x / T::kThreads)),
        thread_(static_cast<int>(threadIdx.x % T::kThreads)),
        lane_(static_cast<int>(threadIdx.x % 32)),
        warp_column_(thread_ / 32 % T::kColumnWarps * 16 * T::kColumnTiles),
        warp_row_(thread_ / 32 / T::kColumnWarps % T::kRowWarps * 8 * T::kRowTiles),
        own_panel_(thread_ / 32 / T::kColumnWarps / T::kRowWarps * T::kOwnPanels),
        place_{part / kParts * T::kPanels, part % kParts * T::kColumns,
               static_cast<int>(blockIdx.x) * T::kRows},
        stages_(args, place_, shared + segment_ * T::kStageBytes, plan.segments * T::kStageBytes,
                thread_, plan.begin_of(segment_), plan.begin_of(segment_ + 1)),
        waiting_(reinterpret_cast<float*>(shared + T::kStages * plan.segments * T::kStageBytes) +
                     threadIdx.x,
                 plan.segments * T::kThreads, local) {}

  __device__ void run() {
    stages_.clear_absent_rows();
    for (int s = 0; s < T::kStages - 1; ++s) stages_.load(s);
    StagePlace now{plan_.begin_of(segment_)};
    const int end = plan_.begin_of(segment_ + 1);
    for (int slot = 0; now.leaf < end; slot = slot + 1 < T::kStages ? slot + 1 : 0) {
      await_copies<T::kStages - 2>();
      if constexpr (T::kIsRounded) release_to_products();
      meet();  // the stage has arrived, and nobody reads the one before any more
      const int before = slot == 0 ? T::kStages - 1 : slot - 1;
      if constexpr (T::kIsRounded) {
        start_products(slot, now.k > 0);
        stages_.load(before);
        end_products();
      } else {
        stages_.load(before);
        multiply(slot);
      }
      if (now.inputs(args_) <= kDepth) end_leaf(now.leaf);
      now.advance(args_, kDepth);
    }
    if constexpr (result == Result::kSwiglu)
      store_swiglu();
    else if constexpr (result == Result::kProduct)
      store_sums();
    else
      store_leaves();
  }

 private:
  // All threads of the segment.
  __device__ void meet() const {
    if constexpr (T::kMostSegments == 1)
      __syncthreads();
    else
      asm volatile("bar.sync %0, %1;" ::"r"(segment_ + 1), "n"(T::kThreads) : "memory");
  }

  // By a warpgroup, which goes on meanwhile.
  __device__ void start_products(int slot, bool adds) {
    begin_products();
    const auto right = operand_of<Lines::kOutputs>(stages_.rows(slot));
#pragma unroll
    for (int p = 0; p < T::kOwnPanels; ++p) {
      const auto left = operand_of<Lines::kInputs>(stages_.weights(slot, own_panel_ + p));
#pragma unroll
      for (int k = 0; k < kDepth; k += 16)
        start_product<Lines::kInputs, Lines::kOutputs>(
            sums_[p], operand_at<Lines::kInputs>(left, k), operand_at<Lines::kOutputs>(right, k),
            adds || k > 0);
    }
    end_product_group();
  }
  __device__ void end_products() {
    await_products();
#pragma unroll
    for (int p = 0; p < T::kOwnPanels; ++p) keep_sums(sums_[p]);
  }
  // Two steps of 16 inputs at a time.
  __device__ void multiply(int slot) {
#pragma unroll
    for (int k = 0; k < kDepth; k += 32) {
      unsigned x[T::kRowTiles][4];
      load_row_tiles(x, slot, k);
#pragma unroll
      for (int p = 0; p < T::kPanels; ++p)
#pragma unroll
        for (int c = 0; c < T::kColumnTiles; ++c) {
          unsigned w[2][4];
          load_left_transposed<T::kColumns>(w, stages_.weights(slot, p), warp_column_ + 16 * c, k);
#pragma unroll
          for (int t = 0; t < T::kRowTiles; ++t) multiply_tiles(sums_[p][number(c, t)], w, x[t]);
        }
    }
  }
  // The right operands of two steps (32 inputs).
  __device__ void load_row_tiles(unsigned (&x)[T::kRowTiles][4], int slot, int k) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* const lane = stages_.rows(slot) +
                                stages_.quad_of(warp_row_ + lane_ / 4, 2 * i + lane_ % 4 / 2) +
                                lane_ % 2 * 2 + k;
#pragma unroll
      for (int t = 0; t < T::kRowTiles; ++t) {
        const auto pair = *reinterpret_cast<const float2*>(lane + 8 * t * kDepth);
        x[t][i] = packed(pair.x, pair.y);
      }
    }
  }
  // Of the tile of columns c and rows t.
  __device__ static constexpr int number(int c, int t) {
    return c * T::kRowTiles + t;
  }

  __device__ void end_leaf(int leaf) {
    if constexpr (result == Result::kLeaves) {
      // Additions beyond those of this segment are in plan.additions.
      waiting_.add(min(plan_.additions_after(leaf), waiting_.all()), sums_[0]);
      if constexpr (T::kIsRounded)
        drop_sums(sums_[0]);
      else
        Waiting::for_sums([&](int t, int i) { sums_[0][t][i] = 0.0f; });
    }
  }

  // f(row, column in a panel, t, i) for the sums of this thread; of rows that are there.
  template <class F>
  __device__ void for_each_sum(const F& f) const {
    Waiting::for_sums([&](int t, int i) {
      const int column =
          place_.in_panel + warp_column_ + t / T::kRowTiles * 16 + lane_ / 4 + i / 2 * 8;
      const int row = place_.row + warp_row_ + t % T::kRowTiles * 8 + lane_ % 4 * 2 + i % 2;
      if (row < args_.rows) f(row, column, t, i);
    });
  }
  __device__ void store_sums() const {
#pragma unroll
    for (int p = 0; p < T::kOwnPanels; ++p)
      for_each_sum([&](int row, int in_panel, int t, int i) {
        const int column = (place_.panel + own_panel_ + p) * kPanel + in_panel;
        if (column >= args_.columns) return;
        float& y = args_.y[row * args_.y_row + column];
        const float sum = 0.0f + sums_[p][t][i];
        y = args_.bias == nullptr ? sum : sum + args_.bias[column];
      });
  }
  __device__ void store_swiglu() const {
#pragma unroll
    for (int p = 0; p < T::kOwnPanels; p += 2)
      for_each_sum([&](int row, int in_panel, int t, int i) {
        const int panel = place_.panel + own_panel_ + p;
        if (panel * kPanel >= args_.columns) return;
        const float gate = 0.0f + sums_[p][t][i], up = 0.0f + sums_[p + 1][t][i];
        float* y = args_.y + row * args_.y_row + panel * kPanel + in_panel;
        y[0] = gate;
        y[kPanel] = up;
        args_.act[std::int64_t{row} * (args_.columns / 2) + panel / 2 * kPanel + in_panel] =
            swiglu_of(gate, up);
      });
  }
  __device__ void store_leaves() {
    if (plan_.segments > 1)
      add_segments();
    else
      waiting_.take_all([&](int p, const Sums& sums) {
        for_each_sum([&](int row, int in_panel, int t, int i) {
          store_partial(p, row, in_panel, sums[t][i]);
        });
      });
  }
  __device__ void store_partial(int p, int row, int in_panel, float sum) const {
    const int column = place_.panel * kPanel + in_panel;
    if (column >= args_.columns) return;
    const auto at = row * args_.y_row + column;
    if (args_.residual != nullptr)
      args_.y[at] = args_.residual[at] + sum;
    else
      args_.y[p * args_.y_partial + at] = sum;
  }
  // The nodes of the segments, each on the stack in turn; the threads of all segments share out the
  // sums.
  __device__ void add_segments() {
    await_copies<0>();
    __syncthreads();  // nobody reads stages any more
    auto* nodes = reinterpret_cast<float*>(shared_);
    const auto node = [&](int s, int t, int i) -> float& {
      return nodes[((s * kTiles + t) * 4 + i) * T::kThreads + thread_];
    };
    waiting_.with_latest_sums([&](const Sums& sums) {
      Waiting::for_sums([&](int t, int i) { node(segment_, t, i) = sums[t][i]; });
    });
    __syncthreads();
    for_each_sum([&](int row, int in_panel, int t, int i) {
      if ((4 * t + i) % plan_.segments != segment_) return;
      int depth = 0;
      for (int s = 0; s < plan_.segments; ++s) {
        float sum = node(s, t, i);
        for (int n = plan_.additions[s]; n > 0; --n) sum = node(--depth, t, i) + sum;
        node(depth++, t, i) = sum;
      }
      store_partial(0, row, in_panel, node(0, t, i));
    });
  }

  const ProductArgs& args_;
  const PlanOf<result>& plan_;
  char* shared_;
  const int segment_, thread_, lane_, warp_column_, warp_row_, own_panel_;
  const BlockPlace place_;
  StageCopies<T> stages_;
  Waiting waiting_;
  float sums_[T::kOwnPanels][kTiles][4] = {};
};

#endif

}  // namespace taper::detail
