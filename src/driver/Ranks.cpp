// SPDX-License-Identifier: Apache-2.0
#include "driver/Ranks.hpp"

#include <algorithm>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "comm/Collectives.hpp"
#include "device/HostMemory.hpp"

namespace taper {

DivisorChain chain_with(int ranks, std::vector<int> degrees) {
  degrees.push_back(1);
  degrees.push_back(ranks);
  std::sort(degrees.begin(), degrees.end());
  degrees.erase(std::unique(degrees.begin(), degrees.end()), degrees.end());
  std::vector<int> chain{1};
  for (std::size_t i = 1; i < degrees.size(); ++i) {
    const int from = degrees[i - 1], to = degrees[i];
    TAPER_VALIDATE(to % from == 0 && ranks % to == 0,
                   "tensor-parallel degree "
                       << (ranks % to != 0 ? to : from) << " on " << ranks
                       << " ranks (degrees must divide the ranks and each other)");
    const DivisorChain steps = DivisorChain::of(to / from);
    for (std::size_t s = 1; s < steps.degrees().size(); ++s)
      chain.push_back(from * steps.degrees()[s]);
  }
  return DivisorChain(chain);
}

void require_divisible(int ranks, const std::vector<std::pair<std::string, int>>& degrees) {
  for (const auto& [option, degree] : degrees)
    TAPER_VALIDATE(ranks % degree == 0,
                   option << " is " << degree << " (it must divide the " << ranks
                          << " ranks); choose a divisor, or start another number of ranks");
  for (const auto& [option, degree] : degrees)
    for (const auto& [other, larger] : degrees)
      TAPER_VALIDATE(larger < degree || larger % degree == 0,
                     option << " is " << degree << " and " << other << " is " << larger << " on "
                            << ranks << " ranks (one must divide the other)");
}

Ranks::Ranks(MPI_Comm comm, int size, const std::vector<int>& tp_degrees, Progress& shared_progress)
    : progress(shared_progress),
      chain(chain_with(size, tp_degrees)),
      groups(
          GroupCache::for_chain(comm, chain, GroupOptions{WaitPolicy::kAuto, &shared_progress})) {}

std::string from_rank_0(const Ranks& ranks, const std::function<std::string()>& make) {
  std::string text;
  std::vector<std::int32_t> code{0};
  if (ranks.rank() == 0) try {
      text = make();
    } catch (const Error& error) {
      text = error.what();
      code = {static_cast<std::int32_t>(error.code())};
    }
  broadcast(ranks.world(), code, 0);
  text = broadcast_string(ranks.world(), text, 0);
  if (code.front() != 0) throw Error(static_cast<ExitCode>(code.front()), text);
  return text;
}

void require_equal(const Ranks& ranks, const std::string& what, const std::string& text) {
  std::vector<std::uint64_t> hashes(ranks.size());
  all_gather(ranks.world(), hashes, std::vector<std::uint64_t>{fnv1a(text)});
  for (int r = 1; r < ranks.size(); ++r)
    TAPER_VALIDATE(
        hashes[r] == hashes[0],
        what << " of rank " << r << " differs from that of rank 0 (all ranks must read the same)");
}

void require_memory(const Ranks& ranks, const MemoryPlan& plan, const std::string& advice) {
  struct Need {
    std::int64_t bytes, ranks, host, process;  // host, process: bytes left, 0 without a limit
    bool fits_process() const { return process <= 0 || bytes <= process; }
    bool fits_host() const { return host <= 0 || bytes * ranks <= host; }
  };
  const Need mine{plan.total(), ranks.ranks_on_host, host_memory_left(), process_memory_left()};
  std::vector<Need> all(ranks.size());
  all_gather(ranks.world(), all, std::vector<Need>{mine});
  for (std::size_t r = 0; r < all.size(); ++r) {
    const Need& need = all[r];
    const std::string bytes = format_bytes(static_cast<double>(need.bytes));
    TAPER_VALIDATE(need.fits_process(), "the memory plan of rank "
                                            << r << " needs " << bytes
                                            << " (the address-space limit of its process has "
                                            << format_bytes(static_cast<double>(need.process))
                                            << " left); " << advice << ", or raise ulimit -v");
    TAPER_VALIDATE(need.fits_host(), "the memory plan of rank "
                                         << r << " needs " << bytes << " on each of " << need.ranks
                                         << " ranks of its host (which has "
                                         << format_bytes(static_cast<double>(need.host))
                                         << " left); " << advice << ", or use more hosts");
  }
}

}  // namespace taper
