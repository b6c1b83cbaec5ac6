// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace taper {

// Starts Kokkos and ends it, and puts every computing thread into the floating-point mode of the
// exactness contract: flush-to-zero and denormals-are-zero. One per process; all Views must be gone
// before it.
class Runtime {
 public:
  // `threads` of the host execution space; 0: as OMP_NUM_THREADS and KOKKOS_NUM_THREADS say, else
  // as many as the process may run on cores. `device`: of those that the process sees, in builds
  // for GPUs.
  Runtime(int& argc, char** argv, int threads = 0, int device = 0);
  Runtime() = default;  // if Kokkos already runs: only sets the floating-point mode
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

 private:
  bool owns_kokkos_ = false;
};

// Threads of the host execution space, which must run.
int host_threads();

// Sets flush-to-zero and denormals-are-zero on the calling thread and on all threads of the host
// execution space.
void set_float_mode();

}  // namespace taper
