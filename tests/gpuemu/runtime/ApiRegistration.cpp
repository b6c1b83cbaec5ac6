// SPDX-License-Identifier: Apache-2.0
//
// What nvcc's host code calls before main, and at each `kernel<<<...>>>`.
#include <unistd.h>

#include "gpuemu/runtime/Runtime.hpp"

using namespace taper::gpuemu;

namespace {

struct Configuration {
  dim3 grid, block;
  std::size_t shared;
  cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

Dim dim_of(const dim3& d) {
  return {d.x, d.y, d.z};
}

}  // namespace

namespace taper::gpuemu {

// The handles 0, 1 and 2 (default, legacy, per thread) are the default stream here.
Stream* stream_of(cudaStream_t stream) {
  if (reinterpret_cast<std::uintptr_t>(stream) <= 2) return &Runtime::get().queue.legacy();
  return reinterpret_cast<Stream*>(stream);
}

}  // namespace taper::gpuemu

extern "C" {

void** __cudaRegisterFatBinary(void* fat_binary) {
  return guarded([&](Runtime&) {
    auto* binary = new Binary;
    binary->texts = ptx_of(fat_binary);
    return reinterpret_cast<void**>(binary);
  });
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void** binary, const char* host, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  guarded([&](Runtime& r) { r.kernels[host] = {reinterpret_cast<Binary*>(binary), name}; });
}

void __cudaRegisterVar(void** binary, char* host, char*, const char* name, int, size_t, int, int) {
  guarded([&](Runtime& r) { r.variables[host] = {reinterpret_cast<Binary*>(binary), name}; });
}

char __cudaInitModule(void**) {
  return 1;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  const Configuration c = configurations.back();
  configurations.pop_back();
  *grid = c.grid;
  *block = c.block;
  *shared = c.shared;
  *static_cast<cudaStream_t*>(stream) = c.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared, cudaStream_t stream) {
  return guarded([&](Runtime& r) {
    return r.launch(function, dim_of(grid), dim_of(block), arguments, shared, stream_of(stream));
  });
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, arguments, shared,
                          stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, size_t shared, cudaStream_t stream) {
  while (has_peer_fault("stall")) ::sleep(1);
  return guarded([&](Runtime& r) {
    return r.launch(function, dim_of(grid), dim_of(block), arguments, shared, stream_of(stream),
                    true);
  });
}

// Attributes (programmatic launches, clusters of one block) change the time alone.
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* c, const void* function,
                                void** arguments) {
  return cudaLaunchKernel(function, c->gridDim, c->blockDim, arguments, c->dynamicSmemBytes,
                          c->stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, const void* function) {
  return guarded([&](Runtime& r) {
    const Routine& routine = r.kernel_of(function, nullptr);
    *a = {};
    a->maxThreadsPerBlock = 1024;
    a->numRegs = 32;
    a->localSizeBytes = static_cast<std::size_t>(routine.local_bytes);
    a->maxDynamicSharedSizeBytes = static_cast<int>(kMostSharedBytes);
    a->ptxVersion = a->binaryVersion = r.settings.architecture;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return cudaSuccess;
}
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) {
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, const void*, int, size_t) {
  *n = 2;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* n, const void*, int, size_t,
                                                                   unsigned) {
  *n = 2;
  return cudaSuccess;
}

}  // extern "C"
