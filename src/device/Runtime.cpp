// SPDX-License-Identifier: Apache-2.0
#include "device/Runtime.hpp"

#include <Kokkos_Core.hpp>
#include <cstdlib>
#include <string>

#if defined(KOKKOS_ENABLE_OPENMP)
#include <omp.h>
#endif

#include "base/FloatMode.hpp"

namespace taper {
namespace {

// One index per thread of the pool: static chunks of one give each thread its own.
template <class F>
void on_every_thread(const F& f) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  Kokkos::parallel_for("taper::float_mode",
                       Kokkos::RangePolicy<Host>(0, host_threads()).set_chunk_size(1),
                       [&](const int) { f(); });
}

}  // namespace

Runtime::Runtime(int& argc, char** argv, int threads, [[maybe_unused]] int device)
    : owns_kokkos_(true) {
  // Kokkos advises binding of threads, on every rank, although the placement of ranks has said what
  // there is to say.
  setenv("KOKKOS_DISABLE_WARNINGS", "1", 0);
#if defined(KOKKOS_ENABLE_OPENMP)
  // Kokkos starts a parallel region to count threads before it looks at its own settings; OpenMP
  // has read OMP_NUM_THREADS before main.
  if (threads > 0) omp_set_num_threads(threads);
#else
  if (threads > 0) setenv("KOKKOS_NUM_THREADS", std::to_string(threads).c_str(), 1);
#endif
#if defined(TAPER_CUDA)
  setenv("KOKKOS_DEVICE_ID", std::to_string(device).c_str(), 1);
#endif
  Kokkos::initialize(argc, argv);
  set_float_mode();
}

Runtime::~Runtime() {
  if (owns_kokkos_) Kokkos::finalize();
}

int host_threads() {
  return Kokkos::DefaultHostExecutionSpace().concurrency();
}

void set_float_mode() {
  flush_on_this_thread();
  on_every_thread([] { flush_on_this_thread(); });
}

}  // namespace taper
