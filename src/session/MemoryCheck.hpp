// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "device/Arena.hpp"
#include "session/Ranks.hpp"

namespace taper {

// Why a plan does not fit; empty if it does. As require_memory(), but the text is returned, the
// same on all ranks. Collective over the world.
std::string memory_problem(const Ranks& ranks, const MemoryPlan& plan, const std::string& advice);

// Throws Error on every rank, with the figures of the first rank that fails, if a plan exceeds
// the address space that its process has left (ulimit -v), or the plans of all ranks of a host, or
// of a GPU, the memory that it has left; `advice` names the options that lower the need. Ranks of
// other blocks are not counted. Collective over the world.
void require_memory(const Ranks& ranks, const MemoryPlan& plan, const std::string& advice);

}  // namespace taper
