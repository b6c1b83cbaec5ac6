// SPDX-License-Identifier: Apache-2.0
//
// A block of a product on tensor cores, in the order of canonical/tensor_core.hpp. Weights are the
// left operand of the tiles (16 columns), activations the right one (8 rows), so that few rows
// waste little. Both are copied into shared memory some stages ahead; activations are rounded as
// they enter a tile, or, where there are many rows and memory for it, before.
//
// Leaves are shared out over warps as well: a block has the same columns several times, each time
// for a segment of the leaves, whose sums are a node of the tree; the nodes are added at the end.
#pragma once

#include "kernels/detail/DeviceMath.hpp"
#include "kernels/detail/TensorCore.hpp"
#include "kernels/detail/TensorTile.hpp"

namespace taper::detail {

#if defined(__CUDA_ARCH__)

template <int kRows, Result result, class T>
class ProductBlock {
  using X = std::conditional_t<T::kIsRounded, bf16, float>;  // activations in memory
  static constexpr int kDepth = T::kDepth;

 public:
  // `part`: which of the blocks that share out the columns.
  __device__ ProductBlock(const ProductArgs& args, const PlanOf<result>& plan, int part,
                          char* shared)
      : args_(args),
        plan_(plan),
        shared_(shared),
        segments_(plan.segments),
        segment_(static_cast<int>(threadIdx.x / T::kThreads)),
        thread_(static_cast<int>(threadIdx.x % T::kThreads)),
        lane_(static_cast<int>(threadIdx.x % 32)),
        warp_column_(thread_ / 32 % T::kColumnWarps * 16 * T::kColumnTiles),
        warp_row_(thread_ / 32 / T::kColumnWarps * 8 * T::kRowTiles),
        panel_(part / kParts * T::kPanels),
        in_panel_(part % kParts * T::kColumns),
        row0_(static_cast<int>(blockIdx.x) * kRows),
        valid_rows_(min(args.rows - row0_, kRows)),
        first_leaf_(plan.begin_of(segment_)),
        end_leaf_(plan.begin_of(segment_ + 1)),
        aligned_(args.a_row % 4 == 0 && args.a_leaf % 4 == 0 &&
                 reinterpret_cast<std::uintptr_t>(args.a) % 16 == 0) {}

  __device__ void run() {
    clear_absent_rows();
    const int per_leaf = (args_.leaf_k + kDepth - 1) / kDepth;
    const int stages = per_leaf * longest_segment();
    Place ahead{first_leaf_, 0};
    for (int s = 0; s < T::kStages - 1; ++s) {
      load(ahead, s);
      end_copy_group();
    }
    Place now{first_leaf_, 0};
    for (int s = 0, slot = 0; s < stages; ++s) {
      await_copies<T::kStages - 2>();
      __syncthreads();  // stage s has arrived, and nobody reads the one before any more
      load(ahead, slot == 0 ? T::kStages - 1 : slot - 1);
      end_copy_group();
      if (now.leaf < end_leaf_) {
        multiply(slot);
        if (now.k + kDepth >= size_of(now.leaf)) end_leaf(now.leaf);
        advance(now);
      }
      slot = slot + 1 < T::kStages ? slot + 1 : 0;
    }
    if constexpr (result == Result::kSwiglu)
      store_swiglu();
    else if constexpr (result == Result::kProduct)
      store_sums();
    else
      store_leaves();
  }

 private:
  static constexpr int kParts = kPanel / T::kColumns;            // blocks of a panel
  static constexpr int kTiles = T::kColumnTiles * T::kRowTiles;  // of a warp and panel

  // What is multiplied in one stage: inputs [k, k + kDepth) of a leaf.
  struct Place {
    int leaf, k;
  };
  __device__ int size_of(int leaf) const {
    return leaf + 1 == args_.leaves ? args_.last_leaf_k : args_.leaf_k;
  }
  __device__ void advance(Place& place) const {
    place.k += kDepth;
    if (place.k < size_of(place.leaf)) return;
    ++place.leaf;
    place.k = 0;
  }
  __device__ int longest_segment() const {
    int longest = 0;
    for (int s = 0; s < segments_; ++s)
      longest = max(longest, plan_.begin_of(s + 1) - plan_.begin_of(s));
    return longest;
  }

  __device__ bf16* weights(int slot, int panel) const {
    return reinterpret_cast<bf16*>(shared_ + (slot * segments_ + segment_) * T::kStageBytes) +
           panel * kDepth * T::kColumns;
  }
  __device__ X* rows(int slot) const { return reinterpret_cast<X*>(weights(slot, T::kPanels)); }
  // Where quad q (four values) of a row is: eight lanes read pairs of values of four rows without
  // conflicts.
  __device__ static int quad_of(int row, int q) { return row * kDepth + (q ^ (row & 3) << 1) * 4; }

  __device__ void clear_absent_rows() const {
    for (int slot = 0; slot < T::kStages; ++slot)
      for (int i = valid_rows_ * kDepth + thread_; i < kRows * kDepth; i += T::kThreads)
        rows(slot)[i] = X();
  }

  // Starts to copy a stage, if there is one, and goes on to the next.
  __device__ void load(Place& place, int slot) const {
    if (place.leaf >= end_leaf_) return;
    const int size = size_of(place.leaf) - place.k;
    load_weights(place, size, slot);
    if constexpr (T::kIsRounded)
      load_rounded_rows(place, size, slot);
    else
      load_rows(place, size, slot);
    advance(place);
  }
  // A thread copies the same chunk of every kLines-th line: all but one address of a whole stage
  // are constants.
  __device__ void load_weights(const Place& place, int size, int slot) const {
    constexpr int kChunks = T::kColumns / 8, kLines = T::kThreads / kChunks;  // at once
    static_assert(kLines % 8 == 0);
    const unsigned line = static_cast<unsigned>(thread_) / kChunks,
                   chunk = static_cast<unsigned>(thread_) % kChunks;
    const bf16* from = static_cast<const bf16*>(args_.w) + panel_ * args_.w_panel +
                       place.leaf * args_.w_leaf + in_panel_ + place.k * kPanel + chunk * 8;
    bf16* const to = chunk_at<T::kColumns>(weights(slot, 0), line, chunk);
#pragma unroll
    for (int panel = 0; panel < T::kPanels; ++panel) {
      if (size >= kDepth) {
        const bf16* const first = from + line * kPanel;
#pragma unroll
        for (int i = 0; i < kDepth; i += kLines)
          start_copy(to + (panel * kDepth + i) * T::kColumns, first + i * kPanel, 16);
      } else {
        for (int i = 0; i < kDepth; i += kLines) {
          const int at = line + i;
          start_copy(to + (panel * kDepth + i) * T::kColumns, at < size ? from + at * kPanel : from,
                     at < size ? 16 : 0);
        }
      }
      if ((panel_ + panel + 1) * kPanel < args_.columns) from += args_.w_panel;  // is there
    }
  }
  __device__ void load_rows(const Place& place, int size, int slot) const {
    constexpr int kAtOnce = T::kThreads / (kDepth / 4);  // rows
    const int row = static_cast<unsigned>(thread_) / (kDepth / 4),
              quad = static_cast<unsigned>(thread_) % (kDepth / 4);
    const int valid = max(0, min(4, size - 4 * quad));
    const float* from = args_.a + (row0_ + row) * args_.a_row + place.leaf * args_.a_leaf +
                        place.k + (valid > 0 ? 4 * quad : 0);
    float* const first = rows(slot);
#pragma unroll
    for (int i = 0; i < kRows; i += kAtOnce) {
      if (row + i >= valid_rows_) break;
      float* const to = first + quad_of(row + i, quad);
      if (aligned_) {
        start_copy(to, from, 4 * valid);
      } else {
        for (int j = 0; j < 4; ++j) to[j] = j < valid ? from[j] : 0.0f;
      }
      from += kAtOnce * args_.a_row;
    }
  }

  __device__ void load_rounded_rows(const Place& place, int size, int slot) const {
    constexpr int kAtOnce = T::kThreads / (kDepth / 8);  // rows
    const int row = static_cast<unsigned>(thread_) / (kDepth / 8),
              chunk = static_cast<unsigned>(thread_) % (kDepth / 8);
    const int valid = max(0, min(8, size - 8 * chunk));
    const bf16* from = reinterpret_cast<const bf16*>(args_.a) + (row0_ + row) * args_.a_row +
                       place.leaf * args_.a_leaf + place.k + (valid > 0 ? 8 * chunk : 0);
    bf16* const first = rows(slot);
#pragma unroll
    for (int i = 0; i < kRows; i += kAtOnce) {
      if (row + i >= valid_rows_) break;
      start_copy(chunk_at<kDepth>(first, row + i, chunk), from, 2 * valid);
      from += kAtOnce * args_.a_row;
    }
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
          load_left_transposed<T::kColumns>(w, weights(slot, p), warp_column_ + 16 * c, k);
#pragma unroll
          for (int t = 0; t < T::kRowTiles; ++t) multiply_tiles(sums_[p][number(c, t)], w, x[t]);
        }
    }
  }
  // The right operands of two steps (32 inputs).
  __device__ void load_row_tiles(unsigned (&x)[T::kRowTiles][4], int slot, int k) const {
    if constexpr (T::kIsRounded) {
#pragma unroll
      for (int t = 0; t < T::kRowTiles; ++t)
        load_right<kDepth>(x[t], rows(slot), warp_row_ + 8 * t, k);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* const lane =
            rows(slot) + quad_of(warp_row_ + lane_ / 4, 2 * i + lane_ % 4 / 2) + lane_ % 2 * 2 + k;
#pragma unroll
        for (int t = 0; t < T::kRowTiles; ++t) {
          const auto pair = *reinterpret_cast<const float2*>(lane + 8 * t * kDepth);
          x[t][i] = packed(pair.x, pair.y);
        }
      }
    }
  }
  // Of the tile of columns c and rows t.
  __device__ static constexpr int number(int c, int t) {
    return c * T::kRowTiles + t;
  }

  // The first of the sums of this thread that wait in memory, and those of the next tile and sum.
  static constexpr int kRegisters = T::kRegisters;
  using Sums = float[kTiles][4];
  static constexpr int kNextSum = T::kThreads, kNextTile = 4 * kNextSum;
  __device__ float* in_memory(int depth) const {
    float* const first =
        reinterpret_cast<float*>(shared_ + T::kStages * segments_ * T::kStageBytes);
    return first + (depth * segments_ + segment_) * kTiles * kNextTile + thread_;
  }
  // f(t, i) for the sums of this thread.
  template <class F>
  __device__ static void for_sums(const F& f) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i) f(t, i);
  }
  // f(the register that has number r).
  template <class F>
  __device__ void with_register(int r, const F& f) {
#pragma unroll
    for (int i = 0; i < kRegisters; ++i)
      if (i == r) f(registers_[i]);
  }
  // The latest sum that waits in a register is in number latest_, those before it in the ones
  // below, 0 being above the last. The last leaf's sum stays in sums_, and additions beyond those
  // of this segment are in plan.additions.
  __device__ void end_leaf(int leaf) {
    if constexpr (result == Result::kLeaves) {
      for (int n = min(plan_.additions_after(leaf), waiting_.all()); n > 0; --n) {
        const bool in_register = waiting_.in_registers > 0;
        waiting_.pop();
        if (in_register) {
          with_register(latest_, [&](const Sums& sums) {
            for_sums([&](int t, int i) { sums_[0][t][i] = sums[t][i] + sums_[0][t][i]; });
          });
          latest_ = latest_ > 0 ? latest_ - 1 : kRegisters - 1;
        } else {
          const float* const sums = in_memory(waiting_.in_memory);
          for_sums([&](int t, int i) {
            sums_[0][t][i] = sums[t * kNextTile + i * kNextSum] + sums_[0][t][i];
          });
        }
      }
      const auto sum = [&](int t, int i) { return 0.0f + sums_[0][t][i]; };  // never -0
      if (leaf + 1 == end_leaf_) {
        for_sums([&](int t, int i) { sums_[0][t][i] = sum(t, i); });
        return;
      }
      latest_ = latest_ + 1 < kRegisters ? latest_ + 1 : 0;
      float* const next = in_memory(waiting_.in_memory);
      with_register(latest_, [&](Sums& sums) {
        if (waiting_.in_registers == kRegisters)  // the oldest makes room
          for_sums([&](int t, int i) { next[t * kNextTile + i * kNextSum] = sums[t][i]; });
        for_sums([&](int t, int i) {
          sums[t][i] = sum(t, i);
          sums_[0][t][i] = 0.0f;
        });
      });
      waiting_.push();
    }
  }

  // f(row, column in a panel, t, i) for the sums of this thread; of rows that are there.
  template <class F>
  __device__ void for_each_sum(const F& f) const {
    for_sums([&](int t, int i) {
      const int column = in_panel_ + warp_column_ + t / T::kRowTiles * 16 + lane_ / 4 + i / 2 * 8;
      const int row = row0_ + warp_row_ + t % T::kRowTiles * 8 + lane_ % 4 * 2 + i % 2;
      if (row < args_.rows) f(row, column, t, i);
    });
  }
  __device__ void store_sums() const {
#pragma unroll
    for (int p = 0; p < T::kPanels; ++p)
      for_each_sum([&](int row, int in_panel, int t, int i) {
        const int column = (panel_ + p) * kPanel + in_panel;
        if (column >= args_.columns) return;
        float& y = args_.y[row * args_.y_row + column];
        const float sum = 0.0f + sums_[p][t][i];
        y = args_.bias == nullptr ? sum : sum + args_.bias[column];
      });
  }
  __device__ void store_swiglu() const {
#pragma unroll
    for (int p = 0; p < T::kPanels; p += 2)
      for_each_sum([&](int row, int in_panel, int t, int i) {
        const int panel = panel_ + p;
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
    if (segments_ > 1) {
      add_segments();
      return;
    }
    int p = 0;
    for (; p < waiting_.in_memory; ++p) {
      const float* const sums = in_memory(p);
      for_each_sum([&](int row, int in_panel, int t, int i) {
        store_partial(p, row, in_panel, sums[t * kNextTile + i * kNextSum]);
      });
    }
    for (int n = waiting_.in_registers - 1; n >= 0; --n)
      with_register((latest_ - n + kRegisters) % kRegisters,
                    [&](const Sums& sums) { store_partials(p++, sums); });
    store_partials(p, sums_[0]);
  }
  __device__ void store_partials(int p, const Sums& sums) const {
    for_each_sum(
        [&](int row, int in_panel, int t, int i) { store_partial(p, row, in_panel, sums[t][i]); });
  }
  __device__ void store_partial(int p, int row, int in_panel, float sum) const {
    const int column = panel_ * kPanel + in_panel;
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
    for_sums([&](int t, int i) { node(segment_, t, i) = sums_[0][t][i]; });
    __syncthreads();
    for_each_sum([&](int row, int in_panel, int t, int i) {
      if ((4 * t + i) % segments_ != segment_) return;
      int depth = 0;
      for (int s = 0; s < segments_; ++s) {
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
  const int segments_, segment_, thread_, lane_, warp_column_, warp_row_, panel_, in_panel_, row0_,
      valid_rows_, first_leaf_, end_leaf_;
  const bool aligned_;
  float sums_[T::kPanels][kTiles][4] = {};
  WaitingLeaves<kRegisters> waiting_;
  Sums registers_[kRegisters];
  int latest_ = kRegisters - 1;
};

#endif

}  // namespace taper::detail
