// SPDX-License-Identifier: Apache-2.0
//
// Products of tiles by a warpgroup, four warps of sm_90 (PTX ISA 9.0, 9.7.15): 64 columns of the
// left operand at once, both operands from shared memory, while the warps go on. Device code only;
// all lanes of the warpgroup call these functions together.
#pragma once

#include <cstdint>

#include "base/Bf16.hpp"

namespace taper::detail {

// How lines of 64 values, permuted as chunk_at<64> does, are read: each as one row or column of
// 64 inputs, or each as one input of 64 rows or columns.
enum class Lines { kOutputs, kInputs };

#if defined(__CUDA_ARCH__)

// A tile in shared memory that begins at a multiple of 1,024 bytes, from which an operand of 16
// inputs is read. `next`: bytes from 64 rows or columns to the next 64, where lines are inputs.
template <Lines lines>
__device__ std::uint64_t operand_of(const bf16* tile, int next = 0) {
  constexpr std::uint64_t kPermuted = 1ull << 62, kEightLines = 1024 >> 4;
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  return kPermuted | kEightLines << 32 | static_cast<std::uint64_t>(next >> 4) << 16 |
         (address & 0x3ffff) >> 4;
}
// The operand of the 16 inputs from k on (k < 64, a multiple of 16).
template <Lines lines>
__device__ std::uint64_t operand_at(std::uint64_t operand, int k) {
  return operand + (lines == Lines::kInputs ? k * 128 : k * 2) / 16;
}

// A number that all lanes of a warp have, where the compiler does not see it: it lets products run
// ahead of one another only where no lane can part from the others.
__device__ inline int uniform(unsigned number) {
  return static_cast<int>(__shfl_sync(~0u, number, 0));
}

// Before the first product, and after other instructions have written sums.
__device__ inline void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// Makes what this thread has written to shared memory, or copied there, visible to products that
// begin after the next barrier.
__device__ inline void release_to_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#define TAPER_SUMS(t) "+f"(sums[t][0]), "+f"(sums[t][1]), "+f"(sums[t][2]), "+f"(sums[t][3])
#define TAPER_SUMS_OF_32(t) TAPER_SUMS(t), TAPER_SUMS(t + 1), TAPER_SUMS(t + 2), TAPER_SUMS(t + 3)

// sums (64 columns, 8 n rows) = left right, or += where it adds. Lane l of warp w has of tile t the
// sums of columns 16 w + l / 4 + {0, 8} and rows 8 t + 2 (l % 4) + {0, 1}. They are there after
// await_products.
template <Lines left_lines, Lines right_lines>
__device__ void start_product(float (&sums)[8][4], std::uint64_t left, std::uint64_t right,
                              bool adds) {
  asm volatile(
      "{\n"
      ".reg .pred adds;\n"
      "setp.ne.b32 adds, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, adds, 1, 1, %35, %36;\n"
      "}"
      : TAPER_SUMS_OF_32(0), TAPER_SUMS_OF_32(4)
      : "l"(left), "l"(right), "r"(static_cast<int>(adds)), "n"(left_lines == Lines::kInputs),
        "n"(right_lines == Lines::kInputs)
      : "memory");
}
template <Lines left_lines, Lines right_lines>
__device__ void start_product(float (&sums)[16][4], std::uint64_t left, std::uint64_t right,
                              bool adds) {
  asm volatile(
      "{\n"
      ".reg .pred adds;\n"
      "setp.ne.b32 adds, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, adds, 1, 1, %67, %68;\n"
      "}"
      : TAPER_SUMS_OF_32(0), TAPER_SUMS_OF_32(4), TAPER_SUMS_OF_32(8), TAPER_SUMS_OF_32(12)
      : "l"(left), "l"(right), "r"(static_cast<int>(adds)), "n"(left_lines == Lines::kInputs),
        "n"(right_lines == Lines::kInputs)
      : "memory");
}
#undef TAPER_SUMS_OF_32
#undef TAPER_SUMS

// After the last product of a stage.
__device__ inline void end_product_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits for all groups of products of the warpgroup; call keep_sums for their sums then.
__device__ inline void await_products() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
// Says that the values of sums are no longer needed.
template <int n>
__device__ void drop_sums(float (&sums)[n][4]) {
#pragma unroll
  for (int t = 0; t < n; ++t)
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "=f"(sums[t][i]));
}
// Keeps the compiler from reading or moving sums before this point.
template <int n>
__device__ void keep_sums(float (&sums)[n][4]) {
#pragma unroll
  for (int t = 0; t < n; ++t)
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(sums[t][i])::"memory");
}

#endif

}  // namespace taper::detail
