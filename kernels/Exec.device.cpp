// SPDX-License-Identifier: Apache-2.0
//
// The stream of the device, and the pool of staging memory.
#include <memory_resource>
#include <mutex>
#include <vector>

#include "kernels/Staging.hpp"
#include "kernels/detail/DeviceLaunch.hpp"

namespace taper {
namespace {

// Page-locked memory of the system.
class PinnedMemory : public std::pmr::memory_resource {
 private:
  void* do_allocate(std::size_t bytes, std::size_t) override {
    return Kokkos::kokkos_malloc<Kokkos::CudaHostPinnedSpace>("taper::staging", bytes);
  }
  void do_deallocate(void* p, std::size_t, std::size_t) override {
    Kokkos::kokkos_free<Kokkos::CudaHostPinnedSpace>(p);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

// Kept to the end of the process: Kokkos may be over before the last vector is.
std::pmr::synchronized_pool_resource& pool() {
  static auto* upstream = new PinnedMemory;
  static auto* pool =
      new std::pmr::synchronized_pool_resource({64, std::size_t{1} << 20}, upstream);
  return *pool;
}

// Kernels may still read what its owner has freed: it goes back to the pool at the next fence.
struct Freed {
  void* p;
  std::size_t bytes;
};
std::vector<Freed>& freed() {
  static auto* list = new std::vector<Freed>;
  return *list;
}
std::mutex& freed_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

}  // namespace

void CudaExec::fence() const {
  detail::kokkos_space(*this).fence("taper::fence");
  const std::scoped_lock lock(freed_mutex());
  for (const Freed& f : freed()) pool().deallocate(f.p, f.bytes, 64);
  freed().clear();
}

CUstream_st* CudaExec::stream() const {
  return detail::kokkos_space(*this).cuda_stream();
}

int CudaExec::architecture() const {
  const cudaDeviceProp& device = detail::kokkos_space(*this).cuda_device_prop();
  return 10 * device.major + device.minor;
}

void* allocate_staging(std::size_t bytes) {
  return pool().allocate(bytes, 64);
}

void free_staging(void* p, std::size_t bytes) {
  const std::scoped_lock lock(freed_mutex());
  freed().push_back({p, bytes});
}

}  // namespace taper
