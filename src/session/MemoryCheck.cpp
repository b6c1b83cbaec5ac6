// SPDX-License-Identifier: Apache-2.0
#include "session/MemoryCheck.hpp"

#include <cstdint>
#include <cstdio>
#include <vector>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "comm/Collectives.hpp"
#include "device/Devices.hpp"
#include "device/HostMemory.hpp"

namespace taper {
namespace {

// What one rank needs of a kind of memory.
struct Need {
  std::int64_t bytes = 0;
  std::int64_t largest_bytes = 0;  // of the largest item
  char largest[40] = {};

  // "1.78 TiB, of which 1.70 TiB for activations (inference),"
  std::string text() const {
    return format_bytes(static_cast<double>(bytes)) + ", of which " +
           format_bytes(static_cast<double>(largest_bytes)) + " for " + largest + ",";
  }
};

// ... and what it may use, for all to see.
struct Place {
  Need host, gpu;
  std::int64_t ranks_on_host = 0, host_left = 0, process_left = 0;  // left: 0 without a limit
  std::int64_t ranks_on_gpu = 0, gpu_left = 0;

  bool fits_process() const { return process_left <= 0 || host.bytes <= process_left; }
  bool fits_host() const { return host_left <= 0 || host.bytes <= host_left / ranks_on_host; }
  bool fits_gpu() const { return gpu_left <= 0 || gpu.bytes <= gpu_left / ranks_on_gpu; }
};

// What is in a kind of memory; on the host all of a plan is in one.
Need need_of(const MemoryPlan& plan, MemoryKind kind) {
  const bool is_divided = ArenaMemory::kHasStaging;
  Need need;
  need.bytes = is_divided ? plan.total(kind) : plan.total();
  for (const MemoryPlan::Item& item : plan.items()) {
    if ((is_divided && item.kind != kind) || item.bytes <= need.largest_bytes) continue;
    need.largest_bytes = item.bytes;
    std::snprintf(need.largest, sizeof need.largest, "%s", item.name.c_str());
  }
  return need;
}

Place place_of(const Ranks& ranks, const MemoryPlan& plan) {
  Place place;
  place.host = need_of(plan, MemoryKind::kStaging);
  place.ranks_on_host = ranks.ranks_on_host();
  place.host_left = host_memory_left();
  place.process_left = process_memory_left();
#if defined(TAPER_CUDA)
  place.gpu = need_of(plan, MemoryKind::kModel);
  place.ranks_on_gpu = ranks.hosts.ranks_on_gpu(ranks.rank());
  place.gpu_left = device_memory_left();
#endif
  return place;
}

std::string together(const Need& need, std::int64_t ranks) {
  return format_bytes(static_cast<double>(need.bytes) * static_cast<double>(ranks)) + " together";
}

}  // namespace

void require_memory(const Ranks& ranks, const MemoryPlan& plan, const std::string& advice) {
  std::vector<Place> all(ranks.size());
  all_gather(ranks.world(), all, std::vector<Place>{place_of(ranks, plan)});
  for (std::size_t r = 0; r < all.size(); ++r) {
    const Place& place = all[r];
    TAPER_VALIDATE(place.fits_process(),
                   "the memory plan of rank "
                       << r << " needs " << place.host.text()
                       << " in one process (whose address-space limit has "
                       << format_bytes(static_cast<double>(place.process_left)) << " left); "
                       << advice << ", or raise ulimit -v");
    TAPER_VALIDATE(place.fits_host(), "the memory plan of rank "
                                          << r << " needs " << place.host.text() << " on each of "
                                          << place.ranks_on_host << " ranks of its host ("
                                          << together(place.host, place.ranks_on_host)
                                          << "; the host has "
                                          << format_bytes(static_cast<double>(place.host_left))
                                          << " left); " << advice << ", or use more hosts");
    TAPER_VALIDATE(place.fits_gpu(),
                   "the memory plan of rank "
                       << r << " needs " << place.gpu.text() << " on each of " << place.ranks_on_gpu
                       << " ranks of its GPU (" << together(place.gpu, place.ranks_on_gpu)
                       << "; the GPU has " << format_bytes(static_cast<double>(place.gpu_left))
                       << " left); " << advice << ", or use more GPUs");
  }
}

}  // namespace taper
