// SPDX-License-Identifier: Apache-2.0
#include "session/ThreadChoice.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/Error.hpp"
#include "base/Text.hpp"

namespace taper {
namespace {

// Of a core; more than rounding can take from sums of shares such as 1/3 + 1/3 + 1/3.
constexpr double kRounding = 1e-3;

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
  choice.room = std::max(1, static_cast<int>(share + kRounding));
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

// Digits of an int above zero.
bool is_thread_count(std::string_view text) {
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  return error == std::errc() && end == text.data() + text.size() && threads > 0;
}

// OpenMP takes a list, too: a number for each level of nesting, with blanks around it.
bool are_thread_counts(std::string_view text) {
  for (;;) {
    const std::size_t comma = text.find(',');
    if (!is_thread_count(trim(text.substr(0, comma)))) return false;
    if (comma == text.npos) return true;
    text.remove_prefix(comma + 1);
  }
}

// The variables and what may stand in them; the last one counts.
constexpr std::pair<const char*, bool (*)(std::string_view)> kVariables[] = {
    {"OMP_NUM_THREADS", are_thread_counts}, {"KOKKOS_NUM_THREADS", is_thread_count}};

}  // namespace

ThreadChoice choose_threads(const HostMap& host_map, int rank, const Environment& environment) {
  const RankPlace& mine = host_map.ranks.at(static_cast<std::size_t>(rank));
  Host host;
  for (const RankPlace& other : host_map.ranks)
    if (other.host == mine.host) host.push_back(&other);
  ThreadChoice choice;
  measure(mine, host, choice);
  for (const auto& [name, is_valid] : kVariables) {
    const char* value = environment(name);
    if (value == nullptr || *value == '\0') continue;
    TAPER_VALIDATE(is_valid(value),
                   name << " is '" << value
                        << "' (a number of threads expected); unset it, and Taper shares the cores "
                           "out");
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

std::vector<std::string> thread_warnings(const HostMap& host_map, const std::vector<int>& threads) {
  TAPER_EXPECT(threads.size() == host_map.ranks.size());
  std::map<std::string, Host> hosts;
  for (const RankPlace& place : host_map.ranks) hosts[place.host].push_back(&place);
  std::map<std::string, Crowd> crowds;  // by host
  for (std::size_t r = 0; r < threads.size(); ++r) {
    const RankPlace& place = host_map.ranks[r];
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
    warnings.push_back("too many threads on " + host + " (" + range(crowd.threads) +
                       " for each of the ranks " + join(crowd.ranks) + ", but " +
                       range(crowd.cores) + " cores leave room for " + range(crowd.room) +
                       "): threads that wait for cores make a run many times slower; leave "
                       "OMP_NUM_THREADS and KOKKOS_NUM_THREADS unset, or start fewer ranks");
  }
  return warnings;
}

}  // namespace taper
