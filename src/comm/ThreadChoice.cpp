// SPDX-License-Identifier: Apache-2.0
#include "comm/ThreadChoice.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "base/Error.hpp"
#include "base/Text.hpp"

namespace taper {
namespace {

// Below the thousandth of a core: sums of shares such as 1/3 + 1/3 + 1/3 are whole.
constexpr double kWhole = 1e-3;

bool meet(const std::vector<int>& a, const std::vector<int>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](int core) { return std::binary_search(b.begin(), b.end(), core); });
}

using Host = std::vector<const RankPlace*>;  // the places of its ranks

// A core that several ranks may run on counts for each by its share. Sets the figures of `choice`.
void measure(const RankPlace& mine, const Host& host, ThreadChoice& choice) {
  std::map<int, int> ranks_on;  // of my cores
  for (const int core : mine.cores) ranks_on[core] = 0;
  choice.ranks = 0;
  for (const RankPlace* other : host) {
    if (!meet(mine.cores, other->cores)) continue;
    ++choice.ranks;
    for (const int core : other->cores)
      if (const auto at = ranks_on.find(core); at != ranks_on.end()) ++at->second;
  }
  double share = 0;
  for (const auto& [core, ranks] : ranks_on) share += 1.0 / ranks;
  choice.cores = static_cast<int>(mine.cores.size());
  choice.room = std::max(1, static_cast<int>(share + kWhole));
}

// What the ranks of one host that have too many threads have in common.
struct Crowd {
  std::vector<std::string> ranks;
  std::set<int> threads, room, cores;
};

std::string range(const std::set<int>& values) {
  const std::string least = std::to_string(*values.begin());
  return values.size() == 1 ? least : least + " to " + std::to_string(*values.rbegin());
}

// A number above zero; of OpenMP also a list, one for each level of nesting.
bool is_thread_count(const std::string& text) {
  return text.find_first_not_of("0123456789, ") == std::string::npos && std::atoi(text.c_str()) > 0;
}

}  // namespace

ThreadChoice choose_threads(const Placement& placement, int rank, const Environment& environment) {
  const RankPlace& mine = placement.ranks.at(static_cast<std::size_t>(rank));
  Host host;
  for (const RankPlace& other : placement.ranks)
    if (other.host == mine.host) host.push_back(&other);
  ThreadChoice choice;
  measure(mine, host, choice);
  for (const char* name : {"OMP_NUM_THREADS", "KOKKOS_NUM_THREADS"})  // the last one counts
    if (const char* value = environment(name); value != nullptr && *value != '\0') {
      TAPER_VALIDATE(is_thread_count(value), name << " is '" << value
                                                  << "' (a number of threads expected); unset it, "
                                                     "and Taper shares the cores out");
      choice.setting = name;
    }
  return choice;
}

std::string to_string(const ThreadChoice& choice, const std::vector<int>& threads) {
  TAPER_EXPECT(!threads.empty());
  const auto [least, most] = std::minmax_element(threads.begin(), threads.end());
  const std::string reason =
      choice.setting.empty()
          ? "chosen: " + count_text(choice.cores, "core") + " / " + count_text(choice.ranks, "rank")
          : choice.setting;
  if (*least == *most) return count_text(*least, "thread") + " per rank (" + reason + ")";
  return std::to_string(*least) + " to " + count_text(*most, "thread") +
         " per rank (of rank 0: " + std::to_string(threads.front()) + ", " + reason + ")";
}

std::vector<std::string> thread_warnings(const Placement& placement,
                                         const std::vector<int>& threads) {
  TAPER_EXPECT(threads.size() == placement.ranks.size());
  std::map<std::string, Host> hosts;
  for (const RankPlace& place : placement.ranks) hosts[place.host].push_back(&place);
  std::map<std::string, Crowd> crowds;  // by host
  for (std::size_t r = 0; r < threads.size(); ++r) {
    const RankPlace& place = placement.ranks[r];
    ThreadChoice choice;
    measure(place, hosts.at(place.host), choice);
    if (threads[r] <= choice.room) continue;
    Crowd& crowd = crowds[place.host];
    crowd.ranks.push_back(std::to_string(r));
    crowd.threads.insert(threads[r]);
    crowd.room.insert(choice.room);
    crowd.cores.insert(choice.cores);
  }
  std::vector<std::string> warnings;
  for (const auto& [host, crowd] : crowds) {
    warnings.push_back(
        "too many threads on " + host + " (" + range(crowd.threads) + " for each of the ranks " +
        join(crowd.ranks) + ", where " + range(crowd.cores) + " cores leave room for " +
        range(crowd.room) +
        "): threads that wait for cores make a run slower many times over; leave OMP_NUM_THREADS "
        "and KOKKOS_NUM_THREADS unset, or start fewer ranks");
  }
  return warnings;
}

}  // namespace taper
