// SPDX-License-Identifier: Apache-2.0
#include "session/MemoryCheck.hpp"

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
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
  Need process;                                  // of the host, with what other ranks count
  std::int64_t host_left = 0, process_left = 0;  // 0 without a limit
  std::int64_t gpu_left = 0;

  bool fits_process() const { return process_left <= 0 || process.bytes <= process_left; }
};

// What the ranks of a host, or of a GPU, need together; they need not need the same.
struct Together {
  std::int64_t ranks = 0, bytes = 0;
  int largest = 0;  // the first of the ranks that need most

  bool fits(std::int64_t left) const { return left <= 0 || bytes <= left; }
};

// What is in a kind of memory; on the host all of a plan is in one. With or without items that
// other ranks count.
Need need_of(const MemoryPlan& plan, MemoryKind kind, bool with_uncounted = false) {
  const bool is_divided = ArenaMemory::kHasStaging;
  Need need;
  need.bytes =
      (is_divided ? plan.total(kind) : plan.total()) + (with_uncounted ? plan.uncounted() : 0);
  for (const MemoryPlan::Item& item : plan.items()) {
    if ((is_divided && item.kind != kind) || item.bytes <= need.largest_bytes) continue;
    if (!with_uncounted && !item.is_counted()) continue;
    need.largest_bytes = item.bytes;
    std::snprintf(need.largest, sizeof need.largest, "%s", item.name.c_str());
  }
  return need;
}

Place place_of(const MemoryPlan& plan) {
  Place place;
  place.host = need_of(plan, MemoryKind::kStaging);
  place.process = need_of(plan, MemoryKind::kStaging, true);
  place.host_left = host_memory_left();
  place.process_left = process_memory_left();
#if defined(TAPER_CUDA)
  place.gpu = need_of(plan, MemoryKind::kModel);
  place.gpu_left = device_memory_left();
#endif
  return place;
}

using Where = std::pair<std::string, std::string>;  // host, and what ranks share of it

Where where(const RankPlace& place, std::string RankPlace::*name) {
  return {place.host, place.*name};
}

// The sums over the ranks of each place.
std::map<Where, Together> sums_by(const Ranks& ranks, const std::vector<Place>& all,
                                  std::string RankPlace::*name, Need Place::*need) {
  std::map<Where, Together> sums;
  for (int r = 0; r < std::ssize(all); ++r) {
    const std::int64_t bytes = (all[r].*need).bytes;
    Together& sum =
        sums.try_emplace(where(ranks.hosts.ranks[r], name), Together{0, 0, r}).first->second;
    ++sum.ranks;
    sum.bytes += bytes;
    if (bytes > (all[sum.largest].*need).bytes) sum.largest = r;
  }
  return sums;
}

std::string left_text(const std::string& what, std::int64_t left) {
  return what + " has " + format_bytes(static_cast<double>(left)) + " left";
}

// "the memory plan of rank 1 needs ..., and the 2 ranks of its host need 3.56 TiB together (the
// host has 1.00 TiB left); ...", or "..., and its GPU has 80.0 GiB left; ..."
std::string problem_of(const Together& together, const Need& largest, const std::string& what,
                       std::int64_t left, const std::string& advice) {
  const std::string place =
      together.ranks == 1 ? left_text(" and its " + what, left)
                          : " and the " + count_text(together.ranks, "rank") + " of its " + what +
                                " need " + format_bytes(static_cast<double>(together.bytes)) +
                                " together (" + left_text("the " + what, left) + ")";
  return "the memory plan of rank " + std::to_string(together.largest) + " needs " +
         largest.text() + place + "; " + advice + ", or use more " + what + "s";
}

// Of the first rank that does not fit; empty if all fit. advice[r]: of rank r.
std::string problem_of(const Ranks& ranks, const std::vector<Place>& all,
                       const std::vector<std::string>& advice) {
  const auto hosts = sums_by(ranks, all, &RankPlace::host, &Place::host);
  const auto gpus = sums_by(ranks, all, &RankPlace::gpu, &Place::gpu);
  for (int r = 0; r < ranks.size(); ++r) {
    const Place& place = all[r];
    if (!place.fits_process())
      return "the memory plan of rank " + std::to_string(r) + " needs " + place.process.text() +
             " in one process (whose " + left_text("address-space limit", place.process_left) +
             "); " + advice[r] + ", or raise ulimit -v";
    const Together& on_host = hosts.at(where(ranks.hosts.ranks[r], &RankPlace::host));
    if (!on_host.fits(place.host_left))
      return problem_of(on_host, all[on_host.largest].host, "host", place.host_left,
                        advice[on_host.largest]);
    const Together& on_gpu = gpus.at(where(ranks.hosts.ranks[r], &RankPlace::gpu));
    if (!on_gpu.fits(place.gpu_left))
      return problem_of(on_gpu, all[on_gpu.largest].gpu, "GPU", place.gpu_left,
                        advice[on_gpu.largest]);
  }
  return "";
}

}  // namespace

std::string memory_problem(const Ranks& ranks, const MemoryPlan& plan, const std::string& advice) {
  barrier(ranks.world());  // until then others may hold what this rank has freed
  std::vector<Place> all(ranks.size());
  all_gather(ranks.world(), all, std::vector<Place>{place_of(plan)});
  // Ranks may hold different models: the advice is that of the rank that it is for.
  const auto advices = all_gather_string(ranks.world(), advice);
  return problem_of(ranks, all, advices);
}

void require_memory(const Ranks& ranks, const MemoryPlan& plan, const std::string& advice) {
  const std::string problem = memory_problem(ranks, plan, advice);
  TAPER_VALIDATE(problem.empty(), problem);
}

}  // namespace taper
