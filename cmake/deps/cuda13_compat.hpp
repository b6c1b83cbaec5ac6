// SPDX-License-Identifier: Apache-2.0
// Kokkos before 4.7 calls three CUDA functions whose signatures changed in CUDA 13. These overloads
// offer the old ones, so that Kokkos builds unpatched. cuda.sh force-includes it (-include) when it
// builds Kokkos, and the installed KokkosConfig.cmake does so for all who link Kokkos. Does nothing
// before CUDA 13 and outside nvcc.
#pragma once

#if defined(__cplusplus) && defined(__CUDACC__)
#include <cuda_runtime_api.h>

#if CUDART_VERSION >= 13000
#include <cstddef>

namespace taper_cuda13_compat {
inline cudaMemLocation location(int device) {
  cudaMemLocation where{};
  where.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  where.id = device == cudaCpuDeviceId ? 0 : device;
  return where;
}
}  // namespace taper_cuda13_compat

inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, cudaGraphNode_t const* from,
                                            cudaGraphNode_t const* to, std::size_t count) {
  return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}

inline cudaError_t cudaMemAdvise(void const* data, std::size_t bytes, cudaMemoryAdvise advice,
                                 int device) {
  return cudaMemAdvise(data, bytes, advice, taper_cuda13_compat::location(device));
}

inline cudaError_t cudaMemPrefetchAsync(void const* data, std::size_t bytes, int device,
                                        cudaStream_t stream = nullptr) {
  return cudaMemPrefetchAsync(data, bytes, taper_cuda13_compat::location(device), 0u, stream);
}
#endif
#endif
