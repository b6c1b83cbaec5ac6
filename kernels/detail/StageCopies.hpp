// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/detail/TensorCore.hpp"
#include "kernels/detail/TensorTile.hpp"

namespace taper::detail {

#if defined(__CUDA_ARCH__)

// Where the columns and rows of a block begin: in which panel, where in it, and at which row.
struct BlockPlace {
  int panel, in_panel, row;
};

// What is multiplied in one stage: inputs [k, k + depth) of a leaf.
struct StagePlace {
  int leaf, k = 0;

  __device__ static int size_of(const ProductArgs& args, int leaf) {
    return leaf + 1 == args.leaves ? args.last_leaf_k : args.leaf_k;
  }
  // Of the leaf, from k on.
  __device__ int inputs(const ProductArgs& args) const { return size_of(args, leaf) - k; }
  __device__ void advance(const ProductArgs& args, int depth) {
    k += depth;
    if (k < size_of(args, leaf)) return;
    ++leaf;
    k = 0;
  }
};

// The copies of weights and activations into the stages of a segment of a block. A thread copies
// the same chunk of every kLines-th line of weights, and the same vector of every kAtOnce-th row:
// from stage to stage only one address of each changes.
template <class T>
class StageCopies {
 public:
  using X = std::conditional_t<T::kIsRounded, bf16, float>;  // activations in memory
  static constexpr int kDepth = T::kDepth, kRows = T::kRows;

  // Slots are `stride` bytes apart. Leaves [first_leaf, end_leaf).
  __device__ StageCopies(const ProductArgs& args, const BlockPlace& place, char* slots, int stride,
                         int thread, int first_leaf, int end_leaf)
      : args_(args),
        slots_(slots),
        stride_(stride),
        thread_(thread),
        panel_(place.panel),
        valid_rows_(min(args.rows - place.row, kRows)),
        end_leaf_(end_leaf),
        aligned_(args.a_row % 4 == 0 && args.a_leaf % 4 == 0 &&
                 reinterpret_cast<std::uintptr_t>(args.a) % 16 == 0),
        next_{first_leaf},
        next_weights_(static_cast<const bf16*>(args.w) + place.panel * args.w_panel +
                      first_leaf * args.w_leaf + place.in_panel + line() * kPanel + chunk() * 8),
        next_rows_(reinterpret_cast<const X*>(args.a) + (place.row + row()) * args.a_row +
                   first_leaf * args.a_leaf + kVector * vector()) {
    const int before = (args.leaf_k - 1) / kDepth * kDepth;  // inputs before a leaf's last stage
    leaf_weights_ = args.w_leaf - before * kPanel;
    leaf_inputs_ = args.a_leaf - before;
  }

  __device__ bf16* weights(int slot, int panel) const {
    return reinterpret_cast<bf16*>(slots_ + slot * stride_) + panel * kDepth * T::kColumns;
  }
  __device__ X* rows(int slot) const { return reinterpret_cast<X*>(weights(slot, T::kPanels)); }
  // Where quad q (four values) of a row of floats is: eight lanes read pairs of values of four rows
  // without conflicts.
  __device__ static int quad_of(int row, int q) { return row * kDepth + (q ^ (row & 3) << 1) * 4; }

  __device__ void clear_absent_rows() const {
    for (int slot = 0; slot < T::kStages; ++slot)
      for (int i = valid_rows_ * kDepth + thread_; i < kRows * kDepth; i += T::kThreads)
        rows(slot)[i] = X();
  }

  // Starts to copy the next stage, if there is one.
  __device__ void load(int slot) {
    if (next_.leaf < end_leaf_) {
      const int size = next_.inputs(args_);
      load_weights(size, slot);
      if (T::kIsRounded && size >= kDepth && valid_rows_ == kRows)
        load_whole_rows(slot);
      else
        load_rows(size, slot);
      const bool is_last = size <= kDepth;  // of its leaf
      next_weights_ += is_last ? leaf_weights_ : kDepth * kPanel;
      next_rows_ += is_last ? leaf_inputs_ : kDepth;
      next_.advance(args_, kDepth);
    }
    end_copy_group();
  }

 private:
  static constexpr int kChunks = T::kColumns / 8, kLines = T::kThreads / kChunks;
  static_assert(kLines % 8 == 0);
  static constexpr int kVector = 16 / sizeof(X), kVectors = kDepth / kVector;
  static constexpr int kAtOnce = T::kThreads / kVectors;
  __device__ int line() const { return static_cast<unsigned>(thread_) / kChunks; }
  __device__ int chunk() const { return static_cast<unsigned>(thread_) % kChunks; }
  __device__ int row() const { return static_cast<unsigned>(thread_) / kVectors; }
  __device__ int vector() const { return static_cast<unsigned>(thread_) % kVectors; }
  // Where this thread's vector of a row is.
  __device__ X* vector_at(int slot, int row) const {
    if constexpr (T::kIsRounded)
      return chunk_at<kDepth>(rows(slot), row, vector());
    else
      return rows(slot) + quad_of(row, vector());
  }

  __device__ void load_weights(int size, int slot) const {
    bf16* const to = chunk_at<T::kColumns>(weights(slot, 0), line(), chunk());
    const bf16* from = next_weights_;
#pragma unroll
    for (int panel = 0; panel < T::kPanels; ++panel) {
      if (size >= kDepth) {
#pragma unroll
        for (int i = 0; i < kDepth; i += kLines)
          start_copy(to + (panel * kDepth + i) * T::kColumns, from + i * kPanel, 16);
      } else {
        for (int i = 0; i < kDepth; i += kLines) {
          const bool is_there = line() + i < size;
          start_copy(to + (panel * kDepth + i) * T::kColumns,
                     is_there ? from + i * kPanel : args_.w, is_there ? 16 : 0);
        }
      }
      if ((panel_ + panel + 1) * kPanel < args_.columns) from += args_.w_panel;  // is there
    }
  }
  __device__ void load_whole_rows(int slot) const {
    const X* from = next_rows_;
#pragma unroll
    for (int i = 0; i < kRows; i += kAtOnce, from += kAtOnce * args_.a_row)
      start_copy(vector_at(slot, row() + i), from, 16);
  }
  __device__ void load_rows(int size, int slot) const {
    const int valid = max(0, min(kVector, size - kVector * vector()));
    const X* from = valid > 0 ? next_rows_ : reinterpret_cast<const X*>(args_.a);
#pragma unroll
    for (int i = 0; i < kRows; i += kAtOnce) {
      if (row() + i >= valid_rows_) break;
      X* const to = vector_at(slot, row() + i);
      if (T::kIsRounded || aligned_) {
        start_copy(to, from, static_cast<int>(sizeof(X)) * valid);
      } else {
        for (int j = 0; j < kVector; ++j) to[j] = j < valid ? from[j] : X();
      }
      from += valid > 0 ? kAtOnce * args_.a_row : 0;
    }
  }

  const ProductArgs& args_;
  char* slots_;
  const int stride_, thread_, panel_, valid_rows_, end_leaf_;
  const bool aligned_;
  StagePlace next_;
  const bf16* next_weights_;  // of this thread, in the stage that is copied next
  const X* next_rows_;
  std::int64_t leaf_weights_, leaf_inputs_;  // from a leaf's last stage to the next leaf
};

#endif

}  // namespace taper::detail
