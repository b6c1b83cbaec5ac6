// SPDX-License-Identifier: Apache-2.0
//
// Calls of the CUDA runtime, in builds for GPUs.
#pragma once

#include <cuda_runtime_api.h>

#include "base/Error.hpp"

namespace taper {

// Throws Error (kFailure) that names `what` unless it succeeded. Kernels fail later than they are
// launched, so that any call may tell of one before.
inline void require_cuda(cudaError_t code, const char* what) {
  if (code != cudaSuccess)
    TAPER_FAIL(ExitCode::kFailure,
               what << " failed: " << cudaGetErrorName(code) << " (" << cudaGetErrorString(code)
                    << "); if a kernel before it is to blame, CUDA_LAUNCH_BLOCKING=1 in the "
                       "environment names that one");
}

}  // namespace taper
