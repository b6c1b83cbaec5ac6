// SPDX-License-Identifier: Apache-2.0
#include "session/Ranks.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "comm/Collectives.hpp"
#include "device/HostMemory.hpp"
#include "shard/Layout.hpp"

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

void require_layout(const std::string& option, const std::string& text, int ranks) {
  if (text.empty()) return;
  const auto degrees = group_degrees(text);
  TAPER_VALIDATE(degrees, option << " is '" << text << "' (expected: " << layout_forms() << ")");
  const std::string problem = layout_problem(*degrees, ranks);
  TAPER_VALIDATE(problem.empty(), option << " is " << text << " " << problem);
}

Ranks::Ranks(MPI_Comm comm, int size, const std::vector<int>& tp_degrees, Progress& shared_progress)
    : progress(shared_progress),
      chain(chain_with(size, tp_degrees)),
      groups(GroupCache::for_chain(comm, chain, GroupOptions{WaitPolicy::kAuto, &shared_progress})),
      hosts(gather_host_map(world(), find_place())) {}

Ranks::Ranks(const Ranks& parent, const DivisorChain& chain, GroupCache groups, HostMap hosts)
    : progress(parent.progress),
      chain(chain),
      groups(std::move(groups)),
      exec(parent.exec),
      hosts(std::move(hosts)) {}

Ranks Ranks::block(int first, int size, const std::vector<int>& tp_degrees) const {
  const DivisorChain its_chain = chain_with(size, tp_degrees);
  Group its_world = Group::block(world().comm(), first, size, world().options());
  const auto begin = hosts.ranks.begin() + first;
  return Ranks(*this, its_chain, GroupCache::for_chain(std::move(its_world), its_chain),
               HostMap{{begin, begin + size}});
}

std::string detail::bytes_from_rank_0(const Ranks& ranks,
                                      const std::function<std::string()>& make) {
  std::string text;
  std::vector<std::int32_t> code{0};
  if (ranks.rank() == 0) try {
      text = make();
    } catch (const Error& error) {
      text = error.what();
      code = {static_cast<std::int32_t>(error.code())};
    } catch (const std::filesystem::filesystem_error& error) {
      text = error.what();
      code = {static_cast<std::int32_t>(ExitCode::kBadInput)};
    } catch (const std::exception& error) {
      text = error.what();
      code = {static_cast<std::int32_t>(ExitCode::kFailure)};
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
        what << ": ranks 0 and " << r
             << " have read different contents (all ranks must have the same); check that all "
                "hosts see the same files");
}

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
