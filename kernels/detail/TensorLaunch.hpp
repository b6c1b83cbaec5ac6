// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/CudaCall.hpp"
#include "base/Error.hpp"
#include "kernels/detail/DeviceLaunch.hpp"

namespace taper::detail {

// Whether this program has products by warpgroups (Warpgroup.hpp); other architectures have none.
#if defined(KOKKOS_ARCH_HOPPER90)
inline constexpr bool kHasWarpgroups = true;
#else
inline constexpr bool kHasWarpgroups = false;
#endif

// Blocks of `size` that hold n.
inline unsigned count_of(int n, int size) {
  return static_cast<unsigned>((n + size - 1) / size);
}

// What a block may ask for.
inline std::size_t shared_memory_of_a_block(const CudaExec& exec) {
  return kokkos_space(exec).cuda_device_prop().sharedMemPerBlockOptin;
}

// Launches a kernel whose blocks share so many bytes of memory, as many as the device gives on
// request. `what` names it in errors.
template <auto kernel, class... Args>
void launch_with_shared_memory(const CudaExec& exec, const char* what, dim3 blocks, int threads,
                               std::size_t bytes, const Args&... args) {
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0) return;
  static const std::size_t most = [&] {  // once, not at every launch
    const std::size_t limit = shared_memory_of_a_block(exec);
    require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(limit)),
                 what);
    return limit;
  }();
  TAPER_INSIST(bytes <= most,
               what << " needs " << bytes << " bytes of shared memory (" << most << " are there)");
  kernel<<<blocks, static_cast<unsigned>(threads), bytes, kokkos_space(exec).cuda_stream()>>>(
      args...);
  require_cuda(cudaGetLastError(), what);
}

}  // namespace taper::detail
