// SPDX-License-Identifier: Apache-2.0
#include "session/MemoryDomains.hpp"

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/Error.hpp"
#include "base/Packing.hpp"
#include "base/Text.hpp"
#include "comm/Collectives.hpp"
#include "device/SharedMemory.hpp"

namespace taper {
namespace {

bool is_wanted() {
#if defined(TAPER_CUDA)
  return false;  // weights are in memory of the GPU
#else
  return is_wished("TAPER_SHARE_WEIGHTS");
#endif
}

// Whether all ranks of a node can map what others make: they need not see each other's processes
// (in containers of their own), or may not open their files. Each tries that of the next rank.
// Collective over the node.
bool can_map(const Group& node) {
  constexpr std::int64_t kSize = sizeof(std::int64_t);
  std::vector<std::int32_t> failed{0};
  std::optional<SharedMemory> made;
  std::vector<SharedMemory::Name> mine(1), names(static_cast<std::size_t>(node.size()));
  try {
    mine[0] = made.emplace(kSize).name();
    std::memcpy(made->base(), &mine[0].process, kSize);
  } catch (const Error&) {
    failed[0] = 1;
  }
  all_gather(node, names, mine);
  try {
    const SharedMemory::Name& next = names[(node.rank() + 1) % node.size()];
    std::int64_t seen = -1;
    std::memcpy(&seen, SharedMemory(next).base(), kSize);
    // A process of that number may exist here, too, and be another one.
    if (seen != next.process) failed[0] = 1;
  } catch (const Error&) {
    failed[0] = 1;
  }
  all_reduce_max(node, failed);
  return failed[0] == 0;
}

}  // namespace

std::vector<int> numa_nodes(const std::vector<int>& cores, const std::filesystem::path& folder) {
  constexpr std::string_view kPrefix = "node";
  std::set<int> nodes;
  for (const int core : cores) {
    std::error_code unknown;
    std::filesystem::directory_iterator entries(folder / ("cpu" + std::to_string(core)), unknown);
    for (const auto& entry : entries) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
          name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos)
        nodes.insert(std::stoi(name.substr(kPrefix.size())));
    }
  }
  return {nodes.begin(), nodes.end()};
}

void find_memory_domains(const Group& world, HostMap& hosts) {
  const bool wants = is_wanted();
  if (world.is_null()) return;
  const Group node = Group::of_node(world);
  const std::vector<int> numa = numa_nodes(hosts.ranks[world.rank()].cores);
  // What the ranks of a domain have in common; nothing: this rank is in none.
  std::vector<int> mine;
  if (node.size() > 1 && can_map(node) && wants && numa.size() <= 1) {
    mine = numa;
    mine.push_back(node.world_ranks().front());
  }
  const auto all = all_gather_string(world, packed(mine));
  const std::string nothing = packed(std::vector<int>{});
  std::map<std::string, int> first;  // rank, by what it has in common
  for (int r = 0; r < world.size(); ++r)
    if (all[r] != nothing)
      hosts.ranks[r].memory_domain = first.try_emplace(all[r], r).first->second;
}

}  // namespace taper
