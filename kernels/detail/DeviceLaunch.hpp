// SPDX-License-Identifier: Apache-2.0
//
// Launches of kernels that run on any execution space of Kokkos: on a device, and on the host for
// tests. Threads of a team share scratch memory and wait for one another at team_barrier().
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/Error.hpp"
#if defined(KOKKOS_ENABLE_CUDA) && defined(__CUDACC__)
#include "base/CudaCall.hpp"
#endif
#include "kernels/Exec.hpp"

namespace taper::detail {

template <class Space>
requires Kokkos::is_execution_space_v<Space>
const Space& kokkos_space(const Space& space) {
  return space;
}
inline Kokkos::DefaultHostExecutionSpace kokkos_space(const HostExec&) {
  return {};
}
#if defined(TAPER_CUDA)
inline Kokkos::Cuda kokkos_space(const CudaExec&) {
  return {};
}
#endif

template <class E>
using KokkosSpace = std::decay_t<decltype(kokkos_space(std::declval<const E&>()))>;
template <class E>
inline constexpr bool kIsHostSpace =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace,
                               typename KokkosSpace<E>::memory_space>::accessible;

// Four values that a thread moves at once.
struct alignas(16) Quad {
  float values[4];
};
inline bool is_of_quads(const float* p, std::int64_t n) {
  return n % 4 == 0 && reinterpret_cast<std::uintptr_t>(p) % alignof(Quad) == 0;
}

// f(i) for i in [0, n), a thread each. f is an argument of the kernel: Kokkos would bring large
// ones to the device separately and wait for that, which recorded launches must not.
template <class E, class F>
void device_for_each(const char* label, const E& exec, std::int64_t n, const F& f) {
  static_assert(sizeof(F) < 4000, "CUDA limits the arguments of a kernel to 4 KB");
  using Policy = Kokkos::RangePolicy<KokkosSpace<E>, Kokkos::IndexType<std::int64_t>>;
  constexpr auto kAsArgument = Kokkos::Experimental::WorkItemProperty::HintLightWeight;
  if (n > 0)
    Kokkos::parallel_for(
        label, Kokkos::Experimental::require(Policy(kokkos_space(exec), 0, n), kAsArgument), f);
}

// What a kernel sees of its team: a block of a GPU, one thread on a host. Kokkos' own teams would
// allocate at every launch, which recorded launches must not.
class Team {
 public:
  KOKKOS_INLINE_FUNCTION Team(int number, char* scratch) : number_(number), scratch_(scratch) {}

  KOKKOS_INLINE_FUNCTION int league_rank() const { return number_; }
  KOKKOS_INLINE_FUNCTION int team_rank() const {
    KOKKOS_IF_ON_DEVICE((return static_cast<int>(threadIdx.x);))
    KOKKOS_IF_ON_HOST((return 0;))
  }
  KOKKOS_INLINE_FUNCTION int team_size() const {
    KOKKOS_IF_ON_DEVICE((return static_cast<int>(blockDim.x);))
    KOKKOS_IF_ON_HOST((return 1;))
  }
  KOKKOS_INLINE_FUNCTION void team_barrier() const { KOKKOS_IF_ON_DEVICE((__syncthreads();)) }
  // Aligned to 16 bytes.
  KOKKOS_INLINE_FUNCTION char* scratch() const { return scratch_; }

 private:
  int number_;
  char* scratch_;
};

#if defined(KOKKOS_ENABLE_CUDA) && defined(__CUDACC__)
template <class F>
__global__ void run_teams(const F f) {
  extern __shared__ __align__(16) char team_scratch[];
  f(Team(static_cast<int>(blockIdx.x), team_scratch));
}
#endif

// f(team) for each of n teams of `threads` (one on the host), which share `bytes` of scratch.
template <class E, class F>
void device_for_teams(const char* label, const E& exec, std::int64_t n,
                      [[maybe_unused]] int threads, std::size_t bytes, const F& f) {
  if (n == 0) return;
  if constexpr (kIsHostSpace<E>) {
    using Policy = Kokkos::RangePolicy<KokkosSpace<E>>;
    Kokkos::parallel_for(label, Policy(kokkos_space(exec), 0, n), [=](const std::int64_t i) {
      std::vector<double> scratch(bytes / sizeof(double) + 4);
      void* p = scratch.data();
      std::size_t room = scratch.size() * sizeof(double);
      f(Team(static_cast<int>(i), static_cast<char*>(std::align(16, bytes, p, room))));
    });
  } else {
#if defined(KOKKOS_ENABLE_CUDA) && defined(__CUDACC__)
    run_teams<<<static_cast<unsigned>(n), static_cast<unsigned>(threads), bytes,
                kokkos_space(exec).cuda_stream()>>>(f);
    require_cuda(cudaGetLastError(), label);
#endif
  }
}

// Scratch memory of a team, one array after the other.
class Scratch {
 public:
  KOKKOS_INLINE_FUNCTION explicit Scratch(const Team& team) : next_(team.scratch()) {}
  template <class T>
  KOKKOS_INLINE_FUNCTION T* take(int n) {
    T* p = reinterpret_cast<T*>(next_);
    next_ += (static_cast<std::size_t>(n) * sizeof(T) + 15) / 16 * 16;
    return p;
  }

 private:
  char* next_;
};

// f() by one thread of a team.
template <class F>
KOKKOS_INLINE_FUNCTION void once(const Team& team, const F& f) {
  if (team.team_rank() == 0) f();
}

// use(i, value(i)) for i = begin, begin + step, ... below end. Several values are read before they
// are used, so that a thread does not wait for each.
template <class Int, class Value, class Use>
KOKKOS_INLINE_FUNCTION void read_ahead(Int begin, Int end, Int step, const Value& value,
                                       const Use& use) {
  constexpr int kAtOnce = 8;
  Int i = begin;
  for (; i + (kAtOnce - 1) * step < end; i += kAtOnce * step) {
    decltype(value(i)) read[kAtOnce];
    for (int j = 0; j < kAtOnce; ++j) read[j] = value(i + j * step);
    for (int j = 0; j < kAtOnce; ++j) use(i + j * step, read[j]);
  }
  for (; i < end; i += step) use(i, value(i));
}
// The same for [0, n), shared out over the threads of a team.
template <class Value, class Use>
KOKKOS_INLINE_FUNCTION void team_read(const Team& team, int n, const Value& value, const Use& use) {
  read_ahead(team.team_rank(), n, team.team_size(), value, use);
}

// The sum, or whatever join makes in any order, of what the threads of a team have; all get it.
// Teams on devices have a power of two of threads.
template <class V, class Join>
KOKKOS_INLINE_FUNCTION V team_join(const Team& team, V* parts, V mine, const Join& join) {
  const int me = team.team_rank();
  parts[me] = mine;
  team.team_barrier();
  for (int half = team.team_size() / 2; half > 0; half /= 2) {
    if (me < half) parts[me] = join(parts[me], parts[me + half]);
    team.team_barrier();
  }
  const V all = parts[0];
  team.team_barrier();
  return all;
}

// f(i) for i in [0, n), shared out over the threads of a team.
template <class F>
KOKKOS_INLINE_FUNCTION void team_for(const Team& team, int n, const F& f) {
  for (int i = team.team_rank(); i < n; i += team.team_size()) f(i);
}

}  // namespace taper::detail
