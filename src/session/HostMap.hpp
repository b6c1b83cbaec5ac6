// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "comm/Group.hpp"

namespace taper {

// Where one rank runs. Layouts and their prices depend on the node, binding on the cores of the
// host; several (virtual) nodes may share one host.
struct RankPlace {
  std::string node;
  std::string host;
  int host_cores = 0;      // online
  std::vector<int> cores;  // that the calling thread may run on, ascending
  std::string gpu = {};    // in use, in builds for GPUs
  // The first rank of those that can keep data in memory with this one (session/MemoryDomains.hpp),
  // by its number in the job; -1 if it can with none.
  int memory_domain = -1;
  std::string gpu_capability = {};  // "9.0"

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.node, self.host, self.host_cores, self.cores, self.gpu, self.memory_domain,
                    self.gpu_capability);
  }
  // Without its place in the host: "NVIDIA H100 80GB HBM3 (0000:17:00.0)".
  std::string gpu_name() const { return gpu.substr(0, gpu.find(" (")); }
  bool is_pinned() const { return static_cast<int>(cores.size()) < host_cores; }
};

// The places of all ranks, in rank order.
struct HostMap {
  std::vector<RankPlace> ranks;

  // Nodes numbered by their first rank, and the node of each rank.
  std::vector<std::string> nodes() const;
  std::vector<int> node_of_rank() const;
  // Ranks on the host of `rank`, itself included, and those of them that come before it.
  int ranks_on_host(int rank) const;
  int rank_on_host(int rank) const;
  // Whether any two of them can keep data in memory together.
  bool has_shared_memory() const;
  // Ranks that use a GPU together, those of one GPU in one list.
  std::vector<std::vector<int>> sharing_gpus() const;
};

// The place of this process. Node: `node_name` if given, else the environment's TAPER_NODE (for
// virtual nodes), else SLURMD_NODENAME, else the host name.
RankPlace find_place(const std::string& node_name = "");

// The places of all ranks, as they are now: Kokkos may bind threads when it starts. Collective over
// `group`.
HostMap gather_host_map(const Group& group, const RankPlace& mine);

// One line per rank: rank, node, cores, GPU.
std::string to_string(const HostMap& host_map);

// Ranks pinned to the same single core, one text per core. Such a run would be slower by the number
// of ranks.
std::vector<std::string> pinning_problems(const HostMap& host_map);
// Hosts with more ranks than cores to run on, one text per host.
std::vector<std::string> oversubscription_warnings(const HostMap& host_map);

// Throws Error for pinning problems, on every rank; rank 0 logs the warnings, also of ranks that
// share a GPU.
void check_host_map(const HostMap& host_map);

}  // namespace taper
