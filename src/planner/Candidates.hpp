// SPDX-License-Identifier: Apache-2.0
//
// Layouts worth pricing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/SwitchCost.hpp"

namespace taper {

// Sequences and context of a replica, as far as step times depend on them.
struct ReplicaLoad {
  int running = 0;
  int waiting = 0;
  std::int64_t context = 0;
};

// Whether some group of `to` would make faster steps than the slowest of the groups whose sequences
// it takes over. If none does, a later switch is at least as good as one now: until then every
// sequence advances faster.
bool speeds_up(const LayoutShape& from, std::span<const ReplicaLoad> loads, const LayoutShape& to);

// Whether moving sequences between groups of equal degree evens anything out.
bool is_uneven(const Layout& layout, std::span<const ReplicaLoad> loads);

// The largest number of sequences (evenly spread, of so many positions each) at which `to` makes
// faster steps than `from`; 0 if none. Both uniform.
int crossing(const LayoutShape& from, const LayoutShape& to, std::int64_t mean_context,
             int max_alive);

}  // namespace taper
