// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "device/Arena.hpp"
#include "session/Ranks.hpp"

namespace taper {

// Throws Error on every rank, with the figures of the first rank that fails, if a plan exceeds
// the address space that its process has left (ulimit -v), or the plans of all ranks of a host, or
// of a GPU, the memory that it has left; `advice` names the options that lower the need. Ranks of
// other blocks are not counted. Collective over the world.
void require_memory(const Ranks& ranks, const MemoryPlan& plan, const std::string& advice);

}  // namespace taper
