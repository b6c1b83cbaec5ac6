// SPDX-License-Identifier: Apache-2.0
//
// Sums of outer products on tensor cores, the gradients of weights: one chain over ascending rows
// of the micro-batch for each element, as in canonical/tensor_core.hpp. A block has 128 x 128
// elements, each of its eight warps 64 x 32. Both operands are f32 matrices with a line per input;
// they are copied into shared memory some stages of 32 inputs ahead and rounded as they enter a
// tile.
#include "kernels/detail/DeviceLaunch.hpp"
#include "kernels/detail/TensorCore.hpp"
#include "kernels/detail/TensorLaunch.hpp"
#include "kernels/detail/TensorProduct.hpp"
#include "kernels/detail/Warpgroup.hpp"

namespace taper::detail {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 128;        // elements of a block, by rows and by columns
constexpr int kDepth = 32;        // inputs of a stage
constexpr int kStages = 3;        // being copied or multiplied
constexpr int kLine = kTile + 4;  // floats: lanes read 8 elements of 4 inputs without conflicts
constexpr int kLeftTiles = 4, kRightTiles = 4;  // of a warp: 16 columns, 8 rows each
constexpr std::size_t kBytes = std::size_t{2} * kStages * kDepth * kLine * sizeof(float);

#if defined(__CUDA_ARCH__)

// Adds the sums of a warp, whose elements begin at (row, column), to those elements of `to` that
// are there. Many are read before one is written: nothing else hides the time that memory takes.
template <class T, int left, int right, class Add>
__device__ void add_to(T* to, const ProductArgs& args, const float (&sums)[left][right][4],
                       int column, int row, const Add& add) {
  constexpr int kAtOnce = 4;  // tiles
  static_assert(right % kAtOnce == 0);
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int c = 0; c < left; ++c)
#pragma unroll
    for (int first = 0; first < right; first += kAtOnce) {
      const auto for_elements = [&](const auto& f) {
#pragma unroll
        for (int t = 0; t < kAtOnce; ++t)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int x = column + 16 * c + lane / 4 + i / 2 * 8,
                      y = row + 8 * (first + t) + lane % 4 * 2 + i % 2;
            if (y < args.rows && x < args.columns) f(to[y * args.y_row + x], t, i);
          }
      };
      T old[kAtOnce][4];
      for_elements([&](const T& element, int t, int i) { old[t][i] = element; });
      for_elements(
          [&](T& element, int t, int i) { element = add(old[t][i], sums[c][first + t][i]); });
    }
}
template <int left, int right>
__device__ void add_sums(const ProductArgs& args, const float (&sums)[left][right][4], int column,
                         int row) {
  if (args.fixed == nullptr)
    add_to(args.y, args, sums, column, row, [](float old, float sum) { return old + sum; });
  else
    add_to(args.fixed, args, sums, column, row,
           [](Fixed old, float sum) { return old + to_fixed(sum); });
}

class Block {
 public:
  __device__ Block(const ProductArgs& args, float* shared)
      : args_(args),
        shared_(shared),
        thread_(static_cast<int>(threadIdx.x)),
        lane_(thread_ % 32),
        column0_(static_cast<int>(blockIdx.x) * kTile),
        row0_(static_cast<int>(blockIdx.y) * kTile),
        warp_column_(thread_ / 32 % 2 * 16 * kLeftTiles),
        warp_row_(thread_ / 64 * 8 * kRightTiles) {}

  __device__ void run() {
    const int inputs = args_.last_leaf_k, stages = (inputs + kDepth - 1) / kDepth;
    for (int s = 0; s < kStages - 1; ++s) load(s, s);
    for (int s = 0, slot = 0; s < stages; ++s) {
      await_copies<kStages - 2>();
      __syncthreads();  // stage s has arrived, and nobody reads the one before any more
      load(s + kStages - 1, slot == 0 ? kStages - 1 : slot - 1);
      multiply(slot);
      slot = slot + 1 < kStages ? slot + 1 : 0;
    }
    add_sums(args_, sums_, column0_ + warp_column_, row0_ + warp_row_);
  }

 private:
  __device__ float* left(int slot) const { return shared_ + 2 * slot * kDepth * kLine; }
  __device__ float* right(int slot) const { return left(slot) + kDepth * kLine; }

  __device__ void load(int stage, int slot) const {
    const int k = stage * kDepth;
    if (k < args_.last_leaf_k) {
      load_lines(left(slot), static_cast<const float*>(args_.w), args_.w_k, k, column0_,
                 args_.columns);
      load_lines(right(slot), args_.a, args_.a_k, k, row0_, args_.rows);
    }
    end_copy_group();
  }
  // Values [first, first + 128) of `width` of the inputs from k on; zeros beyond.
  __device__ void load_lines(float* to, const float* from, std::int64_t stride, int k, int first,
                             int width) const {
    const bool aligned = stride % 4 == 0 && reinterpret_cast<std::uintptr_t>(from) % 16 == 0;
#pragma unroll 4
    for (int i = thread_; i < kDepth * kTile / 4; i += kThreads) {
      const int line = i / (kTile / 4), at = i % (kTile / 4) * 4;
      const int valid = k + line < args_.last_leaf_k ? max(0, min(4, width - first - at)) : 0;
      const float* source = valid > 0 ? from + (k + line) * stride + first + at : from;
      float* const target = to + line * kLine + at;
      if (aligned) {
        start_copy(target, source, 4 * valid);
      } else {
        for (int j = 0; j < 4; ++j) target[j] = j < valid ? source[j] : 0.0f;
      }
    }
  }

  __device__ void multiply(int slot) {
    const int line = lane_ % 4 * 2, element = lane_ / 4;
#pragma unroll
    for (int k = 0; k < kDepth; k += 16) {
      const float* columns = left(slot) + (k + line) * kLine + warp_column_ + element;
      const float* rows = right(slot) + (k + line) * kLine + warp_row_ + element;
      const auto pair = [](const float* at) { return packed(at[0], at[kLine]); };
      unsigned w[kLeftTiles][4];
#pragma unroll
      for (int c = 0; c < kLeftTiles; ++c)
        for (int i = 0; i < 4; ++i)
          w[c][i] = pair(columns + i / 2 * 8 * kLine + 16 * c + i % 2 * 8);
#pragma unroll
      for (int t = 0; t < kRightTiles; ++t) {
        const unsigned x0 = pair(rows + 8 * t), x1 = pair(rows + 8 * kLine + 8 * t);
#pragma unroll
        for (int c = 0; c < kLeftTiles; ++c) multiply_tiles(sums_[c][t], w[c], x0, x1);
      }
    }
  }

  const ProductArgs& args_;
  float* shared_;
  const int thread_, lane_, column0_, row0_, warp_column_, warp_row_;
  float sums_[kLeftTiles][kRightTiles][4] = {};
};

#endif

__global__ void __launch_bounds__(kThreads)
    add_outer_products(const __grid_constant__ ProductArgs args) {
#if defined(__CUDA_ARCH__)
  extern __shared__ __align__(128) float shared[];
  Block(args, shared).run();
#endif
}

// The same of operands that are bf16 in memory: a block has 128 x 256 elements, each of its two
// warpgroups 64 x 256. Lines of 64 values of an operand are a tile, 64 inputs of it lie together.
struct RoundedTile {
  static constexpr int kColumns = 128, kRows = 256, kDepth = 64, kStages = 4;
  static constexpr int kAtOnce = 128, kRowTiles = kAtOnce / 8;  // rows of one product
  static constexpr int kStageValues = kDepth * (kColumns + kRows);
  static constexpr std::size_t kBytes = std::size_t{2} * kStages * kStageValues;
};

#if defined(__CUDA_ARCH__)

template <class T>
class RoundedBlock {
 public:
  __device__ RoundedBlock(const ProductArgs& args, bf16* shared)
      : args_(args),
        shared_(shared),
        thread_(static_cast<int>(threadIdx.x)),
        column0_(static_cast<int>(blockIdx.x) * T::kColumns),
        row0_(static_cast<int>(blockIdx.y) * T::kRows) {}

  __device__ void run() {
    const int stages = (args_.last_leaf_k + T::kDepth - 1) / T::kDepth;
    for (int s = 0; s < T::kStages - 1; ++s) load(s, s);
    for (int s = 0, slot = 0; s < stages; ++s) {
      await_copies<T::kStages - 2>();
      release_to_products();
      __syncthreads();  // stage s has arrived, and nobody reads the one before any more
      start_products(slot, s > 0);
      load(s + T::kStages - 1, slot == 0 ? T::kStages - 1 : slot - 1);
      await_products();
      keep_sums(sums_[0][0]);
      keep_sums(sums_[1][0]);
      slot = slot + 1 < T::kStages ? slot + 1 : 0;
    }
    const int column = column0_ + thread_ / 32 * 16;
#pragma unroll
    for (int half = 0; half < 2; ++half)
      add_sums(args_, sums_[half], column, row0_ + half * T::kAtOnce);
  }

 private:
  __device__ bf16* left(int slot) const {
    return shared_ + slot * T::kStageValues;
  }
  __device__ bf16* right(int slot) const {
    return left(slot) + T::kDepth * T::kColumns;
  }

  __device__ void load(int stage, int slot) const {
    const int k = stage * T::kDepth;
    if (k < args_.last_leaf_k) {
      load_lines<T::kColumns>(left(slot), static_cast<const bf16*>(args_.w), args_.w_k, k, column0_,
                              args_.columns);
      load_lines<T::kRows>(right(slot), reinterpret_cast<const bf16*>(args_.a), args_.a_k, k, row0_,
                           args_.rows);
    }
    end_copy_group();
  }
  // Values [first, first + size) of `width` of the inputs from k on; zeros beyond.
  template <int size>
  __device__ void load_lines(bf16* to, const bf16* from, std::int64_t stride, int k, int first,
                             int width) const {
    constexpr int kLines = kThreads / (size / 8);  // at once
    const int line = static_cast<unsigned>(thread_) / (size / 8),
              chunk = static_cast<unsigned>(thread_) % (size / 8);
    const int valid = max(0, min(8, width - first - 8 * chunk));
    const bf16* source = from + (k + line) * stride + (valid > 0 ? first + 8 * chunk : 0);
    bf16* const tile = to + chunk / 8 * T::kDepth * 64;
#pragma unroll
    for (int i = 0; i < T::kDepth; i += kLines) {
      const bool inside = k + line + i < args_.last_leaf_k;
      start_copy(chunk_at<64>(tile, line + i, chunk % 8), inside ? source : from,
                 inside ? 2 * valid : 0);
      source += kLines * stride;
    }
  }

  __device__ void start_products(int slot, bool adds) {
    constexpr int kPart = T::kDepth * 64, kPartBytes = 2 * kPart;
    begin_products();
    const auto columns = operand_of<Lines::kInputs>(left(slot) + thread_ / 128 * kPart);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const auto rows =
          operand_of<Lines::kInputs>(right(slot) + half * (T::kAtOnce / 64) * kPart, kPartBytes);
#pragma unroll
      for (int k = 0; k < T::kDepth; k += 16)
        start_product<Lines::kInputs, Lines::kInputs>(
            sums_[half][0], operand_at<Lines::kInputs>(columns, k),
            operand_at<Lines::kInputs>(rows, k), adds || k > 0);
    }
    end_product_group();
  }

  const ProductArgs& args_;
  bf16* shared_;
  const int thread_, column0_, row0_;
  float sums_[2][1][T::kRowTiles][4] = {};  // of the first 128 rows, and the others
};

#endif

template <class T>
__global__ void __launch_bounds__(kThreads)
    add_rounded_outer_products(const __grid_constant__ ProductArgs args) {
#if defined(__CUDA_ARCH__)
  extern __shared__ __align__(1024) char memory[];
  RoundedBlock<T>(args, reinterpret_cast<bf16*>(memory)).run();
#endif
}

dim3 blocks_of(const ProductArgs& args, int columns, int rows) {
  return dim3(count_of(args.columns, columns), count_of(args.rows, rows));
}

// Rounds both operands and multiplies them by warpgroups, where there are any and memory for that.
// Whether it did.
template <class T>
bool launch_rounded(const CudaExec& exec, ProductArgs args) {
  if constexpr (kHasWarpgroups) {
    const std::int64_t inputs = args.last_leaf_k, a = inputs * args.a_k, b = inputs * args.w_k;
    if (args.a_k % 8 != 0 || args.w_k % 8 != 0 || 2 * (a + b) > exec.rounding.bytes ||
        T::kBytes > shared_memory_of_a_block(exec))
      return false;
    auto* const memory = static_cast<bf16*>(exec.rounding.memory);
    args.a = static_cast<const float*>(round_to_bf16(exec, memory, args.a, a));
    args.w = round_to_bf16(exec, memory + a, static_cast<const float*>(args.w), b);
    launch_with_shared_memory<add_rounded_outer_products<T>>(exec, "a gradient of weights",
                                                             blocks_of(args, T::kColumns, T::kRows),
                                                             kThreads, T::kBytes, args);
    return true;
  }
  return false;
}

struct alignas(8) RoundedQuad {
  bf16 values[4];
};

}  // namespace

void* round_to_bf16(const CudaExec& exec, void* to, const float* from, std::int64_t n) {
  TAPER_INSIST(is_of_quads(from, n), "operands of products are not aligned");
  const auto* in = reinterpret_cast<const Quad*>(from);
  auto* out = static_cast<RoundedQuad*>(to);
  device_for_each(
      "taper::round_to_bf16", exec, n / 4, KOKKOS_LAMBDA(const std::int64_t i) {
        const Quad quad = in[i];
        RoundedQuad rounded;
        for (int j = 0; j < 4; ++j) rounded.values[j] = to_bf16(quad.values[j]);
        out[i] = rounded;
      });
  return to;
}

void tensor_outer_product(const CudaExec& exec, const ProductArgs& args) {
  if (!launch_rounded<RoundedTile>(exec, args))
    launch_with_shared_memory<add_outer_products>(
        exec, "a gradient of weights", blocks_of(args, kTile, kTile), kThreads, kBytes, args);
}

}  // namespace taper::detail
