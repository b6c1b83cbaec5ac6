// SPDX-License-Identifier: Apache-2.0
#include "device/ArenaMemory.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

#include "base/CudaCall.hpp"
#include "base/Error.hpp"
#include "base/Text.hpp"

namespace taper {

const bool ArenaMemory::kHasStaging = true;

ArenaMemory::ArenaMemory(std::int64_t bytes, MemoryKind kind) : bytes_(bytes), kind_(kind) {
  const auto room = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  void* p = nullptr;
  if (kind == MemoryKind::kStaging) {
    const cudaError_t code = cudaMallocHost(&p, room);
    TAPER_VALIDATE(code == cudaSuccess,
                   "no " << format_bytes(static_cast<double>(bytes))
                         << " of page-locked memory on this host (" << cudaGetErrorString(code)
                         << "); start fewer ranks per host, or offload less (Optimizer/Offload)");
    std::memset(p, 0, room);
    base_ = static_cast<char*>(p);
    return;
  }
  std::size_t free = 0, total = 0;
  require_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  TAPER_VALIDATE(room <= free, "no memory for " << format_bytes(static_cast<double>(bytes))
                                                << " on the GPU of this rank ("
                                                << format_bytes(static_cast<double>(free)) << " of "
                                                << format_bytes(static_cast<double>(total))
                                                << " are free; see the memory plan above); use "
                                                   "more ranks, a smaller batch or activation "
                                                   "checkpointing");
  require_cuda(cudaMalloc(&p, room), "cudaMalloc");
  require_cuda(cudaMemset(p, 0, room), "cudaMemset");
  base_ = static_cast<char*>(p);
}

ArenaMemory::~ArenaMemory() {
  kind_ == MemoryKind::kStaging ? cudaFreeHost(base_) : cudaFree(base_);
}

void ArenaMemory::populate() {}  // cudaMalloc has done so

}  // namespace taper
