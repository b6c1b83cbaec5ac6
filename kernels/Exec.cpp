// SPDX-License-Identifier: Apache-2.0
#include "kernels/Exec.hpp"

#include <Kokkos_Core.hpp>

namespace taper {

int HostExec::concurrency() const {
  return Kokkos::DefaultHostExecutionSpace().concurrency();
}

void HostExec::fence() const {
  Kokkos::DefaultHostExecutionSpace().fence("taper::fence");
}

}  // namespace taper
