// SPDX-License-Identifier: Apache-2.0
//
// Where kernels run. Modules above the kernels hand an Exec from call to call and know no more of
// it: what it is made of (Kokkos, and CUDA with it) is seen only by the kernels themselves.
#pragma once

namespace taper {

// The threads of this process. Kokkos must run when one is used.
class HostExec {
 public:
  int concurrency() const;  // threads
  // Waits for all kernels that were launched on it.
  void fence() const;
};

#if defined(TAPER_CUDA)
// The GPU of this process, one stream of it: kernels run in the order of their launches, and
// launches return at once.
class CudaExec {
 public:
  void fence() const;
};
#endif

// Where models live and compute. All modules above the kernels name this one, so that a build for a
// device changes it here alone.
#if defined(TAPER_CUDA)
using Exec = CudaExec;
#else
using Exec = HostExec;
#endif

}  // namespace taper
