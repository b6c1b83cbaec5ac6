// SPDX-License-Identifier: Apache-2.0
//
// The instructions around a tensor core of NVIDIA GPUs: tiles of bf16 values from shared memory,
// products of tiles, and copies that arrive while others are computed (PTX ISA 9.0, 9.7.14 and
// 9.7.9.25). Device code only; the lanes of a warp call them together.
#pragma once

#include <Kokkos_Core.hpp>

#include "base/Bf16.hpp"

namespace taper::detail {

#if defined(__CUDA_ARCH__)

// Four tiles of 8 x 8; lane 8 t + r names the start of row r of tile t. Lane l gets elements
// (l / 4, 2 (l % 4) + {0, 1}) of each tile.
__device__ inline void load_tiles(unsigned (&tiles)[4], const bf16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
}
// The same of the transposed tiles.
__device__ inline void load_tiles_transposed(unsigned (&tiles)[4], const bf16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
}

// Chunk (8 values) of a line of `width` values, 32 or a multiple of 64, in a tile of shared memory.
// Chunks are permuted so that eight lines of one chunk lie in all banks.
template <int width>
__device__ bf16* chunk_at(bf16* tile, int line, int chunk) {
  return tile + line * width + (chunk ^ (width == 32 ? line >> 1 & 3 : line & 7)) * 8;
}

// The left operands of two steps (16 rows, 32 inputs), from a tile with a line per row.
template <int width>
__device__ void load_left(unsigned (&a)[2][4], bf16* tile, int row, int k) {
  const int lane = static_cast<int>(threadIdx.x % 32), part = lane / 8;
  for (int step = 0; step < 2; ++step)
    load_tiles(a[step],
               chunk_at<width>(tile, row + lane % 8 + part % 2 * 8, k / 8 + 2 * step + part / 2));
}
// The same from a tile with a line per input.
template <int width>
__device__ void load_left_transposed(unsigned (&a)[2][4], bf16* tile, int row, int k) {
  const int lane = static_cast<int>(threadIdx.x % 32), part = lane / 8;
  // The permutation is that of the line in its group of eight.
  bf16* const first = chunk_at<width>(tile, lane % 8, row / 8 + part % 2) + part / 2 * 8 * width;
  for (int step = 0; step < 2; ++step)
    load_tiles_transposed(a[step], first + (k + 16 * step) * width);
}
// The right operands of two steps (32 inputs, 8 columns), from a tile with a line per column.
template <int width>
__device__ void load_right(unsigned (&b)[4], bf16* tile, int column, int k) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  load_tiles(b, chunk_at<width>(tile, column + lane % 8, k / 8 + lane / 8));
}
// The same from a tile with a line per input.
template <int width>
__device__ void load_right_transposed(unsigned (&b)[4], bf16* tile, int column, int k) {
  load_tiles_transposed(b,
                        chunk_at<width>(tile, k + static_cast<int>(threadIdx.x % 32), column / 8));
}

// The right operands of one step for 16 columns, likewise.
template <int width>
__device__ void load_wide_right_transposed(unsigned (&b)[4], bf16* tile, int column, int k) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  load_tiles_transposed(b, chunk_at<width>(tile, k + lane % 16, column / 8 + lane / 16));
}

// sums (16, 8) += a (16, 16) b (16, 8). Lane l has sums of rows l / 4 and l / 4 + 8, columns
// 2 (l % 4) + {0, 1}.
__device__ inline void multiply_tiles(float (&sums)[4], const unsigned (&a)[4], unsigned b0,
                                      unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// sums += a (16, 32) b (32, 8), two steps.
__device__ inline void multiply_tiles(float (&sums)[4], const unsigned (&a)[2][4],
                                      const unsigned (&b)[4]) {
  multiply_tiles(sums, a[0], b[0], b[1]);
  multiply_tiles(sums, a[1], b[2], b[3]);
}

// Two values rounded to bf16 (as to_bf16, but for the bits of NaN), the first one in the lower
// half.
__device__ inline unsigned packed(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// Starts to copy 16 bytes, of which the first `valid` are read and the others are zero.
__device__ inline void start_copy(void* to, const void* from, int valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(__cvta_generic_to_global(from)), "r"(valid)
               : "memory");
}
__device__ inline void end_copy_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until at most `pending` groups of this thread are under way.
template <int pending>
__device__ inline void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

#endif

}  // namespace taper::detail
