// SPDX-License-Identifier: Apache-2.0
//
// Kernels are launched through Kokkos, which only they include.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>

#include "kernels/Exec.hpp"

namespace taper::detail {

inline Kokkos::DefaultHostExecutionSpace kokkos_space(const HostExec&) {
  return {};
}
// The device's kernels also run on the back ends of Kokkos themselves, for tests.
template <class Space>
requires Kokkos::is_execution_space_v<Space>
const Space& kokkos_space(const Space& space) {
  return space;
}

template <class E>
using KokkosSpace = std::decay_t<decltype(kokkos_space(std::declval<const E&>()))>;

// f(i) for i in [0, n), in equal parts to all threads.
template <class E, class F>
void for_each(const char* label, const E& exec, std::int64_t n, const F& f) {
  using Policy = Kokkos::RangePolicy<KokkosSpace<E>, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(label, Policy(kokkos_space(exec), 0, n), f);
}

// The same where one i takes much longer than another: threads take the next as they get free.
template <class E, class F>
void for_each_uneven(const char* label, const E& exec, std::int64_t n, const F& f) {
  using Policy = Kokkos::RangePolicy<KokkosSpace<E>, Kokkos::IndexType<std::int64_t>,
                                     Kokkos::Schedule<Kokkos::Dynamic>>;
  Kokkos::parallel_for(label, Policy(kokkos_space(exec), 0, n), f);
}

}  // namespace taper::detail
