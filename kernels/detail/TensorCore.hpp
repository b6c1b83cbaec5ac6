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
