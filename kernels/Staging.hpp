// SPDX-License-Identifier: Apache-2.0
//
// Host memory that kernels of Exec can reach: ordinary memory on the host, page-locked memory that
// is mapped into a device.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/Exec.hpp"
#include "kernels/Views.hpp"

namespace taper {

#if defined(TAPER_CUDA)
// From a pool that grows if it must and is kept to the end of the process.
void* allocate_staging(std::size_t bytes);
void free_staging(void* p, std::size_t bytes);

template <class T>
struct StagingAllocator {
  using value_type = T;
  StagingAllocator() = default;
  template <class U>
  StagingAllocator(const StagingAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(allocate_staging(n * sizeof(T))); }
  void deallocate(T* p, std::size_t n) { free_staging(p, n * sizeof(T)); }
  bool operator==(const StagingAllocator&) const { return true; }
};
template <class T>
using Staged = std::vector<T, StagingAllocator<T>>;
#else
template <class T>
using Staged = std::vector<T>;
#endif

// The values where kernels can reach them.
template <class T>
Staged<T> staged(std::vector<T> values) {
#if defined(TAPER_CUDA)
  return Staged<T>(values.begin(), values.end());
#else
  return values;
#endif
}

// A view for kernels of a small array that the host fills before a launch (ids, positions, rows),
// or whose few values it needs after one. The host must not touch the array until the exec.fence()
// after the launch; it may be freed before.
template <class T>
VectorView<T, Exec> staging_view(Staged<T>& values) {
  return VectorView<T, Exec>(values.data(), values.size());
}
template <class T>
VectorView<const T, Exec> staging_view(const Staged<T>& values) {
  return VectorView<const T, Exec>(values.data(), values.size());
}

// The same of values that lie anywhere: the host has them where they are, a device a copy.
template <class T>
class StagedInput {
 public:
  explicit StagedInput(std::span<const T> values)
#if defined(TAPER_CUDA)
      : values_(values.begin(), values.end()){}
#else
      : values_(values) {
  }
#endif
        VectorView<const T, Exec> view() const {
    return {values_.data(), values_.size()};
  }

 private:
#if defined(TAPER_CUDA)
  Staged<T> values_;
#else
  std::span<const T> values_;
#endif
};

}  // namespace taper
