// SPDX-License-Identifier: Apache-2.0
//
// Products of packed weights on tensor cores: which blocks there are for how many rows, and their
// launches (detail/tensor_product.inl.hpp has the blocks).
#include <algorithm>

#include "kernels/detail/TensorLaunch.hpp"
#include "kernels/detail/TensorProduct.hpp"
#include "kernels/detail/tensor_product.inl.hpp"

namespace taper::detail {
namespace {

template <Result result, class T>
__global__ void __launch_bounds__(T::kThreads* T::kMostSegments)
    multiply_on_tensor_cores(const __grid_constant__ ProductArgs args,
                             const __grid_constant__ PlanOf<result> plan) {
#if defined(__CUDA_ARCH__)
  using Block = ProductBlock<result, T>;
  extern __shared__ __align__(1024) char shared[];
  typename Block::Local local;
  Block(args, plan, static_cast<int>(blockIdx.y), shared, local).run();
#endif
}

// The first `parts` blocks of the columns belong to the first product.
template <class T>
__global__ void __launch_bounds__(T::kThreads)
    multiply_both_on_tensor_cores(const __grid_constant__ ProductArgs first,
                                  const __grid_constant__ ProductArgs second, int parts) {
#if defined(__CUDA_ARCH__)
  extern __shared__ __align__(1024) char shared[];
  const int part = static_cast<int>(blockIdx.y);
  const bool is_first = part < parts;
  using Block = ProductBlock<Result::kProduct, T>;
  typename Block::Local local;
  Block(is_first ? first : second, OneLeaf(), is_first ? part : part - parts, shared, local).run();
#endif
}

// Blocks by rows, then by columns: those that run at the same time share weights.
template <class T>
dim3 blocks_of(const ProductArgs& args) {
  return {count_of(args.rows, T::kRows),
          count_of(args.columns, T::kPanels * kPanel) * (kPanel / T::kColumns)};
}

template <Result result, class T>
void launch(const CudaExec& exec, const ProductArgs& args) {
  launch_with_shared_memory<multiply_on_tensor_cores<result, T>>(
      exec, "a product", blocks_of<T>(args), T::kThreads, T::kStages * T::kStageBytes, args,
      OneLeaf());
}

template <class T>
void launch_both(const CudaExec& exec, const ProductArgs& first, const ProductArgs& second) {
  dim3 blocks = blocks_of<T>(first);
  const unsigned parts = blocks.y;
  blocks.y += blocks_of<T>(second).y;
  launch_with_shared_memory<multiply_both_on_tensor_cores<T>>(
      exec, "two products", blocks, T::kThreads, T::kStages * T::kStageBytes, first, second,
      static_cast<int>(parts));
}

// As many segments as keep a GPU busy and fit. Whether even one does.
template <class T>
bool launch_segments(const CudaExec& exec, const ProductArgs& args, bool must_fit) {
  constexpr unsigned kBusyWarps = 2048;
  const dim3 blocks = blocks_of<T>(args);
  const std::size_t most = shared_memory_of_a_block(exec);
  for (int segments = T::kMostSegments; segments > 0; segments /= 2) {
    if (segments > 1 && blocks.x * blocks.y * T::kWarps * (segments / 2) >= kBusyWarps) continue;
    const LeafPlan plan = leaf_plan<T::kRegisters>(args, segments);
    const int waiting = std::min(plan.waiting, T::kMostShared) * T::kRows * T::kColumns;
    const std::size_t bytes = static_cast<std::size_t>(plan.segments) *
                              (T::kStages * T::kStageBytes + sizeof(float) * waiting);
    if (plan.segments != segments || (bytes > most && !(must_fit && segments == 1))) continue;
    launch_with_shared_memory<multiply_on_tensor_cores<Result::kLeaves, T>>(
        exec, "a product with leaves", blocks, plan.segments * T::kThreads, bytes, args, plan);
    return true;
  }
  return false;
}
// Smaller blocks where there would be few, or where not even one segment fits.
template <int rows>
void launch_leaves_of(const CudaExec& exec, const ProductArgs& args) {
  using T = Tile<rows, Result::kLeaves, Width::kNarrow>;
  constexpr unsigned kFewWarps = 512;
  constexpr bool kIsSmallest = rows == 8;
  const dim3 blocks = blocks_of<T>(args);
  const bool are_few = rows > 32 && blocks.x * blocks.y * T::kWarps < kFewWarps;
  if (!are_few && launch_segments<T>(exec, args, kIsSmallest)) return;
  if constexpr (!kIsSmallest) launch_leaves_of<rows / 2>(exec, args);
}

// f(rows of a block): as few as hold the rows, at most `most`.
template <int most, class F>
void with_rows(int rows, const F& f) {
  if (rows <= 8)
    f(std::integral_constant<int, 8>());
  else if (rows <= 16)
    f(std::integral_constant<int, 16>());
  else if (rows <= 32)
    f(std::integral_constant<int, 32>());
  else if (rows <= 64 || most == 64)
    f(std::integral_constant<int, 64>());
  else
    f(std::integral_constant<int, most>());
}
// A template, so that programs without warpgroups have no blocks of theirs.
template <class Warpgroups>
void launch_leaves(const CudaExec& exec, const ProductArgs& args, bool is_rounded) {
  if constexpr (kHasWarpgroups) {
    if (is_rounded) {
      launch_segments<Warpgroups>(exec, args, true);
      return;
    }
  }
  with_rows<64>(args.rows, [&](auto rows) { launch_leaves_of<rows>(exec, args); });
}
// Whether blocks may share what the largest tiles need: on sm_90, not on sm_80 and its kin.
bool has_large_blocks(const CudaExec& exec) {
  return shared_memory_of_a_block(exec) >= (192 << 10);
}
// f(a Tile) for products without leaves.
template <Result result, class F>
void with_tile(const CudaExec& exec, const ProductArgs& args, bool is_rounded, const F& f) {
  constexpr int kManyPanels = 384;  // of which wide blocks are enough for a GPU
  if constexpr (kHasWarpgroups) {
    if (is_rounded) return f(WarpgroupTile<result>());
  }
  const auto with_width = [&](auto rows) {
    if constexpr (rows >= 64) {
      if (rows == 128 || (args.columns >= kManyPanels * kPanel && has_large_blocks(exec)))
        return f(Tile<rows, result, Width::kWide>());
    }
    if constexpr (rows <= 64) f(Tile<rows, result, Width::kNarrow>());
  };
  if (has_large_blocks(exec))
    with_rows<128>(args.rows, with_width);
  else
    with_rows<64>(args.rows, with_width);
}

// Whether all sums that a leaf product has waiting at once have a place in blocks of many rows.
bool has_place_for_leaves(const ProductArgs& args) {
  using T = WarpgroupTile<Result::kLeaves>;
  return leaf_plan<T::kRegisters>(args, 1).waiting <= T::kMostShared + T::kMostLocal;
}
// Rounds the activations of a product of many rows, where there are warpgroups and memory for it.
bool round_rows(const CudaExec& exec, ProductArgs& args) {
  constexpr int kManyRows = 128;  // from which on they are read more often than rounding costs
  const std::int64_t n = args.rows * args.a_row;
  if (!kHasWarpgroups || args.rows < kManyRows || args.a_row % 8 != 0 || args.a_leaf % 8 != 0 ||
      2 * n > exec.rounding.bytes || !has_large_blocks(exec) ||
      (args.program != nullptr && !has_place_for_leaves(args)))
    return false;
  args.a = static_cast<const float*>(round_to_bf16(exec, exec.rounding.memory, args.a, n));
  return true;
}

}  // namespace

void tensor_product(const CudaExec& exec, const ProductArgs& given) {
  ProductArgs args = given;
  if (args.rows == 0 || args.columns == 0) return;
  const bool is_rounded = round_rows(exec, args);
  if (args.program != nullptr) {
    launch_leaves<WarpgroupTile<Result::kLeaves>>(exec, args, is_rounded);
  } else if (args.act != nullptr) {
    with_tile<Result::kSwiglu>(exec, args, is_rounded, [&](auto tile) {
      launch<Result::kSwiglu, decltype(tile)>(exec, args);
    });
  } else {
    with_tile<Result::kProduct>(exec, args, is_rounded, [&](auto tile) {
      launch<Result::kProduct, decltype(tile)>(exec, args);
    });
  }
}

void tensor_product_both(const CudaExec& exec, const ProductArgs& first,
                         const ProductArgs& second) {
  if (first.rows == 0) return;
  ProductArgs one = first, two = second;
  const bool is_rounded = round_rows(exec, one);
  two.a = one.a;
  with_tile<Result::kProduct>(exec, first, is_rounded,
                              [&](auto tile) { launch_both<decltype(tile)>(exec, one, two); });
}

}  // namespace taper::detail
