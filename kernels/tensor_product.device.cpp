// SPDX-License-Identifier: Apache-2.0
//
// Products on tensor cores, in the order of canonical/tensor_core.hpp. A block computes one panel
// of 64 columns for up to 64 rows, for SwiGLU a panel of gates and that of their ups: four warps
// have 16 columns each. Weights are the left operand of
// the tiles (16 columns), activations the right one (8 rows), so that few rows waste little. Inputs
// pass through shared memory, 64 at a time, while earlier ones are multiplied.
#include <algorithm>

#include "base/Error.hpp"
#include "kernels/detail/DeviceLaunch.hpp"
#include "kernels/detail/DeviceMath.hpp"
#include "kernels/detail/TensorCore.hpp"
#include "kernels/detail/TensorLaunch.hpp"
#include "kernels/detail/TensorProduct.hpp"

namespace taper::detail {
namespace {

constexpr int kThreads = 128;
constexpr int kDepth = 64;  // inputs of a stage
constexpr int kStages = 4;  // being copied or multiplied
constexpr int kLine = 64;   // bf16 values of a line of shared memory: 128 bytes

// Where the operands of a product lie.
enum class Source { kPanels, kGradients };

// What becomes of the sums of a block.
enum class Result { kProduct, kSwiglu };

// The tile of a block, and the shared memory of a stage.
template <int kTiles, Source source, Result result>
struct Tile {
  static constexpr int kRows = 8 * kTiles;
  static constexpr int kPanels = result == Result::kSwiglu ? 2 : 1;
  static constexpr int kLines = source == Source::kPanels ? kRows : kDepth;  // of activations
  static constexpr int kStageValues = (kPanels * kDepth + kLines) * kLine;
  static constexpr std::size_t kStageBytes = kStages * kStageValues * sizeof(bf16);  // of all
};

#if defined(__CUDA_ARCH__)

// What is multiplied in one stage: inputs [k, k + 64) of a leaf.
struct Stage {
  int leaf, k, size;  // size: of the leaf
};

template <int kTiles, Source source, Result result>
class Block : Tile<kTiles, source, result> {
  using T = Tile<kTiles, source, result>;

 public:
  // `part`: which of the blocks that share out the columns.
  __device__ Block(const ProductArgs& args, int part, char* shared)
      : args_(args),
        tiles_(reinterpret_cast<bf16*>(shared)),
        stack_(reinterpret_cast<float*>(shared + T::kStageBytes)),
        thread_(static_cast<int>(threadIdx.x)),
        lane_(thread_ % 32),
        panel_(part * T::kPanels),
        column0_(panel_ * kPanel),
        row0_(static_cast<int>(blockIdx.y) * T::kRows) {}

  __device__ void run() {
    const int per_leaf = (args_.leaf_k + kDepth - 1) / kDepth;
    const int last = (args_.last_leaf_k + kDepth - 1) / kDepth;
    const int stages = (args_.leaves - 1) * per_leaf + last;
    const auto stage = [&](int s) {
      const int leaf = min(s / per_leaf, args_.leaves - 1);
      return Stage{leaf, (s - leaf * per_leaf) * kDepth,
                   leaf + 1 == args_.leaves ? args_.last_leaf_k : args_.leaf_k};
    };
    for (int s = 0; s < kStages - 1; ++s) {
      if (s < stages) {
        load_rows(stage(s));
        store_rows(s);
        load_weights(stage(s), s);
      }
      end_copy_group();
    }
    for (int s = 0; s < stages; ++s) {
      const int ahead = s + kStages - 1;
      if (ahead < stages) load_rows(stage(ahead));
      await_copies<kStages - 2>();
      __syncthreads();  // stage s has arrived, and nobody reads the one before any more
      if (ahead < stages) load_weights(stage(ahead), ahead);
      end_copy_group();
      multiply(s);
      if (ahead < stages) store_rows(ahead);
      const Stage now = stage(s);
      if (now.k + kDepth >= now.size) end_leaf(now.leaf);
    }
    if constexpr (result == Result::kSwiglu)
      store_swiglu();
    else if (args_.program == nullptr)
      store_sums();
    else if (args_.residual != nullptr)
      store_added();
    else
      store_partials();
  }

 private:
  __device__ bf16* weights(int s) const { return tiles_ + s % kStages * T::kStageValues; }
  __device__ bf16* rows(int s) const { return weights(s) + T::kPanels * kDepth * kLine; }

  // Quad q of this thread: four values of a line.
  __device__ int line(int q) const { return (q * kThreads + thread_) / (kLine / 4); }
  __device__ int first(int q) const { return (q * kThreads + thread_) % (kLine / 4) * 4; }

  __device__ void load_rows(const Stage& stage) {
    const float* a = args_.a + stage.leaf * args_.a_leaf;
    for (int q = 0; q < kQuads; ++q)
      for (int i = 0; i < 4; ++i) {
        const bool by_rows = source == Source::kPanels;
        const int row = row0_ + (by_rows ? line(q) : first(q) + i);
        const int k = stage.k + (by_rows ? first(q) + i : line(q));
        const bool inside = row < args_.rows && k < stage.size;
        pending_[q][i] = inside ? a[row * args_.a_row + k * args_.a_k] : 0.0f;
      }
  }
  __device__ void store_rows(int s) {
    for (int q = 0; q < kQuads; ++q) store_quad(rows(s), line(q), first(q), pending_[q]);
  }
  __device__ static void store_quad(bf16* tile, int line, int first, const float (&values)[4]) {
    bf16* to = chunk_at<kLine>(tile, line, first / 8) + first % 8;
    for (int i = 0; i < 4; ++i) to[i] = to_bf16(values[i]);
  }

  __device__ void load_weights(const Stage& stage, int s) {
    if constexpr (source == Source::kPanels) {
      const bf16* w =
          static_cast<const bf16*>(args_.w) + panel_ * args_.w_panel + stage.leaf * args_.w_leaf;
      for (int i = thread_; i < T::kPanels * kDepth * kLine / 8; i += kThreads) {
        const int line = i / (kLine / 8), chunk = i % (kLine / 8), k = stage.k + line % kDepth;
        const bool inside = k < stage.size;
        start_copy(chunk_at<kLine>(weights(s), line, chunk),
                   w + line / kDepth * args_.w_panel + (inside ? k : 0) * kPanel + chunk * 8,
                   inside ? 16 : 0);
      }
    } else {
      const float* w = static_cast<const float*>(args_.w);
      for (int i = thread_; i < kDepth * kLine / 4; i += kThreads) {
        const int line = i / (kLine / 4), first = i % (kLine / 4) * 4, k = stage.k + line;
        float values[4];
        for (int j = 0; j < 4; ++j) {
          const int column = column0_ + first + j;
          values[j] = k < stage.size && column < args_.columns ? w[k * args_.w_k + column] : 0.0f;
        }
        store_quad(weights(s), line, first, values);
      }
    }
  }

  // Two steps of 16 inputs at a time.
  __device__ void multiply(int s) {
    const int column = thread_ / 32 * 16;  // of this warp
    for (int k = 0; k < kDepth; k += 32) {
      unsigned w[T::kPanels][2][4];
      for (int p = 0; p < T::kPanels; ++p)
        load_left_transposed<kLine>(w[p], weights(s) + p * kDepth * kLine, column, k);
      for (int t = 0; t < kTiles; ++t) {
        unsigned x[4];
        if constexpr (source == Source::kPanels)
          load_right<kLine>(x, rows(s), 8 * t, k);
        else
          load_right_transposed<kLine>(x, rows(s), 8 * t, k);
        for (int p = 0; p < T::kPanels; ++p) multiply_tiles(sums_[p][t], w[p], x);
      }
    }
  }

  // The stack of leaf sums: a thread only sees its own.
  __device__ float& stacked(int level, int t, int i) const {
    return stack_[((level * kTiles + t) * 4 + i) * kThreads + thread_];
  }
  __device__ void end_leaf(int leaf) {
    if (args_.program == nullptr) return;
    for (int t = 0; t < kTiles; ++t)
      for (int i = 0; i < 4; ++i) sums_[0][t][i] = 0.0f + sums_[0][t][i];  // no leaf is -0
    for (int n = args_.program[leaf]; n > 0; --n) {
      --depth_;
      for (int t = 0; t < kTiles; ++t)
        for (int i = 0; i < 4; ++i) sums_[0][t][i] = stacked(depth_, t, i) + sums_[0][t][i];
    }
    for (int t = 0; t < kTiles; ++t)
      for (int i = 0; i < 4; ++i) {
        stacked(depth_, t, i) = sums_[0][t][i];
        sums_[0][t][i] = 0.0f;
      }
    ++depth_;
  }

  // f(row, column, t, i) for the sums of this thread that are inside.
  template <class F>
  __device__ void for_each_sum(const F& f) const {
    for (int t = 0; t < kTiles; ++t)
      for (int i = 0; i < 4; ++i) {
        const int column = column0_ + thread_ / 32 * 16 + lane_ / 4 + i / 2 * 8;
        const int row = row0_ + 8 * t + lane_ % 4 * 2 + i % 2;
        if (row < args_.rows && column < args_.columns) f(row, column, t, i);
      }
  }
  __device__ void store_sums() const {
    for_each_sum([&](int row, int column, int t, int i) {
      float& y = args_.y[row * args_.y_row + column];
      const float sum = (args_.accumulate ? y : 0.0f) + sums_[0][t][i];
      y = args_.bias == nullptr ? sum : sum + args_.bias[column];
    });
  }
  __device__ void store_partials() const {
    for (int p = 0; p < depth_; ++p)
      for_each_sum([&](int row, int column, int t, int i) {
        args_.y[p * args_.y_partial + row * args_.y_row + column] = stacked(p, t, i);
      });
  }
  __device__ void store_added() const {
    for_each_sum([&](int row, int column, int t, int i) {
      const auto at = row * args_.y_row + column;
      args_.y[at] = args_.residual[at] + stacked(0, t, i);
    });
  }
  __device__ void store_swiglu() const {
    for_each_sum([&](int row, int column, int t, int i) {
      const float gate = 0.0f + sums_[0][t][i], up = 0.0f + sums_[1][t][i];
      float* y = args_.y + row * args_.y_row + column;
      y[0] = gate;
      y[kPanel] = up;
      args_.act[row * (args_.columns / 2) + panel_ / 2 * kPanel + column - column0_] =
          swiglu_of(gate, up);
    });
  }

  static constexpr int kQuads = T::kLines * kLine / 4 / kThreads;

  const ProductArgs& args_;
  bf16* tiles_;
  float* stack_;
  int thread_, lane_, panel_, column0_, row0_;
  int depth_ = 0;
  float pending_[kQuads][4];
  float sums_[T::kPanels][kTiles][4] = {};
};

#endif

template <int kTiles, Source source, Result result>
__global__ void __launch_bounds__(kThreads) multiply_on_tensor_cores(const ProductArgs args) {
#if defined(__CUDA_ARCH__)
  extern __shared__ __align__(128) char shared[];
  Block<kTiles, source, result>(args, static_cast<int>(blockIdx.x), shared).run();
#endif
}

// The first `parts` blocks of each row belong to the first product.
template <int kTiles>
__global__ void __launch_bounds__(kThreads)
    multiply_both_on_tensor_cores(const ProductArgs first, const ProductArgs second, int parts) {
#if defined(__CUDA_ARCH__)
  extern __shared__ __align__(128) char shared[];
  const int part = static_cast<int>(blockIdx.x);
  const bool is_first = part < parts;
  Block<kTiles, Source::kPanels, Result::kProduct>(is_first ? first : second,
                                                   is_first ? part : part - parts, shared)
      .run();
#endif
}

// Leaf sums that wait at once, at most.
int tree_depth(const ProductArgs& args) {
  int depth = 0, deepest = 0;
  for (int leaf = 0; args.program != nullptr && leaf < args.leaves; ++leaf) {
    depth += 1 - args.program[leaf];
    deepest = std::max(deepest, depth + args.program[leaf]);
  }
  return deepest;
}

unsigned count_of(int n, int size) {
  return static_cast<unsigned>((n + size - 1) / size);
}

template <int kTiles, Source source, Result result = Result::kProduct>
void launch(const CudaExec& exec, const ProductArgs& args) {
  using T = Tile<kTiles, source, result>;
  const std::size_t bytes = T::kStageBytes + sizeof(float) *
                                                 static_cast<std::size_t>(tree_depth(args)) *
                                                 T::kRows * kPanel;
  const dim3 blocks(count_of(args.columns, T::kPanels * kPanel), count_of(args.rows, T::kRows));
  launch_with_shared_memory<multiply_on_tensor_cores<kTiles, source, result>>(
      exec, "a product", blocks, kThreads, bytes, args);
}

template <int kTiles>
void launch_both(const CudaExec& exec, const ProductArgs& first, const ProductArgs& second) {
  using T = Tile<kTiles, Source::kPanels, Result::kProduct>;
  const unsigned parts = count_of(first.columns, kPanel);
  const dim3 blocks(parts + count_of(second.columns, kPanel), count_of(first.rows, T::kRows));
  launch_with_shared_memory<multiply_both_on_tensor_cores<kTiles>>(exec, "two products", blocks,
                                                                   kThreads, T::kStageBytes, first,
                                                                   second, static_cast<int>(parts));
}

// f(number of row tiles): as few as hold the rows, at most 8.
template <class F>
void with_tiles(int rows, const F& f) {
  if (rows <= 8)
    f(std::integral_constant<int, 1>());
  else if (rows <= 16)
    f(std::integral_constant<int, 2>());
  else if (rows <= 32)
    f(std::integral_constant<int, 4>());
  else
    f(std::integral_constant<int, 8>());
}

}  // namespace

void tensor_product(const CudaExec& exec, const ProductArgs& args) {
  if (args.rows == 0 || args.columns == 0) return;
  with_tiles(args.rows, [&](auto tiles) {
    if (args.act != nullptr)
      launch<tiles, Source::kPanels, Result::kSwiglu>(exec, args);
    else
      launch<tiles, Source::kPanels>(exec, args);
  });
}

void tensor_product_both(const CudaExec& exec, const ProductArgs& first,
                         const ProductArgs& second) {
  if (first.rows > 0)
    with_tiles(first.rows, [&](auto tiles) { launch_both<tiles>(exec, first, second); });
}

void tensor_outer_product(const CudaExec& exec, const ProductArgs& args) {
  if (args.rows > 0 && args.columns > 0) launch<8, Source::kGradients>(exec, args);
}

}  // namespace taper::detail
