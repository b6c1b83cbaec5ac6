// SPDX-License-Identifier: Apache-2.0
//
// Layouts worth pricing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "predict/GenerationRun.hpp"
#include "predict/Snapshot.hpp"
#include "shard/RankGrid.hpp"

namespace taper {

// Sequences and context of a replica, as far as step times depend on them.
struct ReplicaLoad {
  int running = 0;
  int waiting = 0;
  std::int64_t context = 0;
};

// Whether some group of `to` would make faster steps than the slowest of the groups whose sequences
// it takes over. Where none does, a later switch is at least as good as one now: until then every
// sequence advances faster.
bool speeds_up(const LayoutShape& from, std::span<const ReplicaLoad> loads, const LayoutShape& to);

// Whether moving sequences between groups of equal degree evens anything out.
bool is_uneven(const Layout& layout, std::span<const ReplicaLoad> loads);

// The largest number of sequences (evenly spread, of so many positions each) at which `to` makes
// faster steps than `from`; 0 where none. Both uniform.
int crossing(const LayoutShape& from, const LayoutShape& to, std::int64_t mean_context,
             int max_alive);

// The layout of buddy groups that ends soonest on average over runs of a few scenarios: for each
// node of the tree that the chain spans, either one group of all its ranks or the best of its
// parts. Groups are only merged. None where that is the present layout or a uniform one.
std::optional<Layout> best_merge(const std::vector<GenerationRun>& runs, const DivisorChain& chain,
                                 const StepModel& steps, const std::vector<int>& degrees,
                                 int slots_per_rank);

}  // namespace taper
