// SPDX-License-Identifier: Apache-2.0
#include "kernels/detail/Launch.hpp"

#include <Kokkos_Core.hpp>

namespace taper::detail {
namespace {

template <class Schedule>
void run(const char* label, std::int64_t n, HostTask task) {
  using Policy = Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace,
                                     Kokkos::IndexType<std::int64_t>, Kokkos::Schedule<Schedule>>;
  Kokkos::parallel_for(label, Policy(0, n),
                       [task](const std::int64_t i) { task.call(task.context, i); });
}

}  // namespace

void run_on_host(const char* label, std::int64_t n, HostTask task, TaskOrder order) {
  if (order == TaskOrder::kEqualParts)
    run<Kokkos::Static>(label, n, task);
  else
    run<Kokkos::Dynamic>(label, n, task);
}

}  // namespace taper::detail
