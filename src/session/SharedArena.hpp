// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "device/Arena.hpp"
#include "session/Ranks.hpp"

namespace taper {

// The memory of a plan. Of each item that ranks share one makes the copy and the others map it.
// Throws Error if that fails. Collective over `ranks`, among which are all that share items of the
// plan.
std::unique_ptr<Arena> make_arena(const Ranks& ranks, const MemoryPlan& plan);

}  // namespace taper
