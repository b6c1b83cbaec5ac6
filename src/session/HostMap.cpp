// SPDX-License-Identifier: Apache-2.0
#include "session/HostMap.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Text.hpp"
#include "comm/Affinity.hpp"
#include "comm/GatherValues.hpp"
#include "comm/Wait.hpp"
#include "device/Devices.hpp"

namespace taper {
namespace {

// "0-3,8" for ascending cores.
std::string cores_text(const std::vector<int>& cores) {
  std::ostringstream text;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t last = i;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    text << (i > 0 ? "," : "") << cores[i];
    if (last > i) text << "-" << cores[last];
    i = last + 1;
  }
  return text.str();
}

}  // namespace

RankPlace find_place(const std::string& node_name) {
  RankPlace place;
  place.host = host_name();
  place.node = node_name;
  for (const char* variable : {"TAPER_NODE", "SLURMD_NODENAME"}) {
    const char* value = std::getenv(variable);
    if (place.node.empty() && value != nullptr) place.node = value;
  }
  if (place.node.empty()) place.node = place.host;
  place.host_cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  place.cores = affinity_cores();
#if defined(TAPER_CUDA)
  if (const Device device = device_in_use(); !device.name.empty()) {
    place.gpu = to_string(device);
    place.gpu_capability = capability_text(device.capability);
  }
#endif
  return place;
}

HostMap gather_host_map(const Group& group, const RankPlace& mine) {
  return {all_gather_values(group, mine)};
}

std::vector<std::string> HostMap::nodes() const {
  std::vector<std::string> names;
  for (const auto& place : ranks) {
    if (std::find(names.begin(), names.end(), place.node) == names.end()) {
      names.push_back(place.node);
    }
  }
  return names;
}

std::vector<int> HostMap::node_of_rank() const {
  const auto names = nodes();
  std::vector<int> numbers;
  for (const auto& place : ranks) {
    const auto found = std::find(names.begin(), names.end(), place.node);
    numbers.push_back(static_cast<int>(found - names.begin()));
  }
  return numbers;
}

int HostMap::ranks_on_host(int rank) const {
  const auto& host = ranks.at(static_cast<std::size_t>(rank)).host;
  return static_cast<int>(
      std::count_if(ranks.begin(), ranks.end(), [&](const auto& p) { return p.host == host; }));
}

int HostMap::rank_on_host(int rank) const {
  const auto& host = ranks.at(static_cast<std::size_t>(rank)).host;
  return static_cast<int>(std::count_if(ranks.begin(), ranks.begin() + rank,
                                        [&](const auto& p) { return p.host == host; }));
}

bool HostMap::has_shared_memory() const {
  std::set<int> seen;
  return std::any_of(ranks.begin(), ranks.end(), [&](const RankPlace& place) {
    return place.memory_domain >= 0 && !seen.insert(place.memory_domain).second;
  });
}

std::vector<std::vector<int>> HostMap::sharing_gpus() const {
  std::map<std::pair<std::string, std::string>, std::vector<int>> ranks_of;  // (host, GPU)
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (!ranks[i].gpu.empty())
      ranks_of[{ranks[i].host, ranks[i].gpu}].push_back(static_cast<int>(i));
  std::vector<std::vector<int>> shared;
  for (const auto& [where, list] : ranks_of)
    if (list.size() > 1) shared.push_back(list);
  return shared;
}

std::string to_string(const HostMap& host_map) {
  std::ostringstream text;
  for (std::size_t i = 0; i < host_map.ranks.size(); ++i) {
    const auto& place = host_map.ranks[i];
    text << (i > 0 ? "\n" : "") << "rank " << i << "  node " << place.node << "  cores "
         << cores_text(place.cores) << (place.is_pinned() ? "" : " (not pinned)")
         << (place.gpu.empty() ? "" : "  GPU ") << place.gpu;
  }
  return text.str();
}

std::vector<std::string> pinning_problems(const HostMap& host_map) {
  std::map<std::pair<std::string, int>, std::vector<std::string>> ranks_on;  // (host, core)
  for (std::size_t i = 0; i < host_map.ranks.size(); ++i) {
    const auto& place = host_map.ranks[i];
    if (place.is_pinned() && place.cores.size() == 1) {
      ranks_on[{place.host, place.cores[0]}].push_back(std::to_string(i));
    }
  }
  std::vector<std::string> problems;
  for (const auto& [where, ranks] : ranks_on) {
    if (ranks.size() < 2) continue;
    problems.push_back("ranks " + join(ranks, " and ") + " are all pinned to core " +
                       std::to_string(where.second) + " of " + where.first);
  }
  return problems;
}

std::vector<std::string> oversubscription_warnings(const HostMap& host_map) {
  std::map<std::string, std::pair<int, std::set<int>>> hosts;  // ranks, cores
  for (const auto& place : host_map.ranks) {
    auto& [ranks, cores] = hosts[place.host];
    ++ranks;
    cores.insert(place.cores.begin(), place.cores.end());
  }
  std::vector<std::string> warnings;
  for (const auto& [host, load] : hosts) {
    const auto& [ranks, cores] = load;
    if (!is_oversubscribed(ranks, static_cast<int>(cores.size()))) continue;
    warnings.push_back(std::to_string(ranks) + " ranks share " + std::to_string(cores.size()) +
                       " cores of " + host + " (good for tests, not for speed)");
  }
  return warnings;
}

void check_host_map(const HostMap& host_map) {
  const auto problems = pinning_problems(host_map);
  TAPER_VALIDATE(problems.empty(),
                 join(problems, "; ")
                     << " (OMP_PROC_BIND=true under a launcher that binds nothing does this): use "
                        "mpiexec -bind-to core or srun --cpu-bind=cores, or start fewer ranks");
  if (host_map.ranks.empty() || log_rank() != 0) return;
  for (const auto& text : oversubscription_warnings(host_map)) TAPER_WARN(text);
  for (const auto& ranks : host_map.sharing_gpus())
    TAPER_WARN("ranks " << join(ranks, ", ") << " share the GPU "
                        << host_map.ranks[static_cast<std::size_t>(ranks.front())].gpu
                        << " (good for tests, not for speed)");
}

}  // namespace taper
