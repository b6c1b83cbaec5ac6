// SPDX-License-Identifier: Apache-2.0
//
// Launches of kernels that run on any execution space of Kokkos: on a device, and on the host for
// tests. Threads of a team share scratch memory and wait for one another at team_barrier().
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <type_traits>

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

// f(i) for i in [0, n), a thread each.
template <class E, class F>
void device_for_each(const char* label, const E& exec, std::int64_t n, const F& f) {
  using Policy = Kokkos::RangePolicy<KokkosSpace<E>, Kokkos::IndexType<std::int64_t>>;
  if (n > 0) Kokkos::parallel_for(label, Policy(kokkos_space(exec), 0, n), f);
}

template <class E>
using TeamPolicy = Kokkos::TeamPolicy<KokkosSpace<E>, Kokkos::IndexType<std::int64_t>>;
template <class E>
using Team = typename TeamPolicy<E>::member_type;

// f(team) for each of n teams of `threads` (one on the host), which share `bytes` of scratch.
template <class E, class F>
void device_for_teams(const char* label, const E& exec, std::int64_t n, int threads,
                      std::size_t bytes, const F& f) {
  if (n == 0) return;
  TeamPolicy<E> policy(kokkos_space(exec), static_cast<int>(n), kIsHostSpace<E> ? 1 : threads);
  policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(bytes + 16)));
  Kokkos::parallel_for(label, policy, f);
}

// Scratch memory of a team, one array after the other.
class Scratch {
 public:
  template <class T>
  KOKKOS_INLINE_FUNCTION explicit Scratch(const T& team)
      : next_(static_cast<char*>(team.team_scratch(0).get_shmem_aligned(0, 16))) {}
  template <class T>
  KOKKOS_INLINE_FUNCTION T* take(int n) {
    T* p = reinterpret_cast<T*>(next_);
    next_ += (static_cast<std::size_t>(n) * sizeof(T) + 15) / 16 * 16;
    return p;
  }

 private:
  char* next_;
};

// f(i) for i in [0, n), shared out over the threads of a team.
template <class T, class F>
KOKKOS_INLINE_FUNCTION void team_for(const T& team, int n, const F& f) {
  for (int i = team.team_rank(); i < n; i += team.team_size()) f(i);
}

}  // namespace taper::detail
