// SPDX-License-Identifier: Apache-2.0
#include "comm/Affinity.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/Error.hpp"

namespace taper {

std::vector<int> affinity_cores(int first_guess) {
  constexpr int kMostSets = 1024;
  for (int sets = first_guess / CPU_SETSIZE;; sets = std::max(1, 2 * sets)) {
    std::vector<cpu_set_t> mask(static_cast<std::size_t>(sets));
    const std::size_t size = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, size, mask.data()) == 0) {
      std::vector<int> cores;
      for (int core = 0; core < sets * CPU_SETSIZE; ++core)
        if (CPU_ISSET_S(core, size, mask.data())) cores.push_back(core);
      return cores;
    }
    const int error = errno;  // EINVAL: the kernel's mask is larger
    if (error != EINVAL || sets >= kMostSets)
      TAPER_FAIL(ExitCode::kFailure, "the cores that this process may run on are not known ("
                                         << std::generic_category().message(error)
                                         << "); does the container forbid sched_getaffinity?");
  }
}

}  // namespace taper
