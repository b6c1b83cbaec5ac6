// SPDX-License-Identifier: Apache-2.0
#include "kernels/Exec.hpp"

#include "kernels/detail/Launch.hpp"

namespace taper {

int HostExec::concurrency() const {
  return detail::kokkos_space(*this).concurrency();
}

void HostExec::fence() const {
  detail::kokkos_space(*this).fence("taper::fence");
}

}  // namespace taper
