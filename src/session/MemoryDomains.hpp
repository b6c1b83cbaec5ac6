// SPDX-License-Identifier: Apache-2.0
//
// Which ranks of a host can keep data in memory together.
#pragma once

#include <filesystem>
#include <vector>

#include "comm/Group.hpp"
#include "session/HostMap.hpp"

namespace taper {

// Sets `memory_domain` in the place of every rank. Ranks are in one domain if MPI says that they
// share memory, if they can map each other's, if each runs on one NUMA node, the same, so that none
// reads from a memory farther than its own, and if the environment of none says
// TAPER_SHARE_WEIGHTS=no. There is none on GPUs. Throws Error if the variable is something else
// than yes or no. Collective over `world`.
void find_memory_domains(const Group& world, HostMap& hosts);

// The NUMA nodes of these cores, ascending, from the folder in which the system describes cores;
// empty where it does not say.
std::vector<int> numa_nodes(const std::vector<int>& cores,
                            const std::filesystem::path& folder = "/sys/devices/system/cpu");

}  // namespace taper
