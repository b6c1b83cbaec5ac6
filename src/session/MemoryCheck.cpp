// SPDX-License-Identifier: Apache-2.0
#include "session/MemoryCheck.hpp"

#include <cstdint>
#include <cstdio>
#include <vector>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "comm/Collectives.hpp"
#include "device/HostMemory.hpp"

namespace taper {
namespace {

// What one rank needs, for all to see.
struct Need {
  std::int64_t bytes, ranks, host, process;  // host, process: bytes left, 0 without a limit
  std::int64_t largest_bytes;                // of the largest item
  char largest[40];

  bool fits_process() const { return process <= 0 || bytes <= process; }
  bool fits_host() const { return host <= 0 || bytes <= host / ranks; }
  // "1.78 TiB, of which 1.70 TiB for activations (inference),"
  std::string text() const {
    return format_bytes(static_cast<double>(bytes)) + ", of which " +
           format_bytes(static_cast<double>(largest_bytes)) + " for " + largest + ",";
  }
};

Need need_of(const MemoryPlan& plan, int ranks_on_host) {
  Need need{plan.total(), ranks_on_host, host_memory_left(), process_memory_left(), 0, {}};
  for (const MemoryPlan::Item& item : plan.items()) {
    if (item.bytes <= need.largest_bytes) continue;
    need.largest_bytes = item.bytes;
    std::snprintf(need.largest, sizeof need.largest, "%s", item.name.c_str());
  }
  return need;
}

}  // namespace

void require_memory(const Ranks& ranks, const MemoryPlan& plan, const std::string& advice) {
  std::vector<Need> all(ranks.size());
  all_gather(ranks.world(), all, std::vector<Need>{need_of(plan, ranks.ranks_on_host())});
  for (std::size_t r = 0; r < all.size(); ++r) {
    const Need& need = all[r];
    TAPER_VALIDATE(need.fits_process(), "the memory plan of rank "
                                            << r << " needs " << need.text()
                                            << " in one process (whose address-space limit has "
                                            << format_bytes(static_cast<double>(need.process))
                                            << " left); " << advice << ", or raise ulimit -v");
    TAPER_VALIDATE(
        need.fits_host(),
        "the memory plan of rank "
            << r << " needs " << need.text() << " on each of " << need.ranks
            << " ranks of its host ("
            << format_bytes(static_cast<double>(need.bytes) * static_cast<double>(need.ranks))
            << " together; the host has " << format_bytes(static_cast<double>(need.host))
            << " left); " << advice << ", or use more hosts");
  }
}

}  // namespace taper
