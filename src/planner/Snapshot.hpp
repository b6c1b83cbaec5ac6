// SPDX-License-Identifier: Apache-2.0
//
// What the planner sees of a running generation: a few integers per replica, the same on all ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ReplicaSnapshot.hpp"
#include "shard/Layout.hpp"

namespace taper {

struct Snapshot {
  Layout layout;
  std::vector<ReplicaSnapshot> replicas;  // one for each group of the layout, in its order
  std::int64_t elapsed_ns = 0;            // of the generation: the largest of the leaders' clocks
  std::int64_t consultation = 0;          // counts up within the generation
  std::int64_t epoch = 0;                 // meetings about changes so far in the generation

  int alive() const;
  std::int64_t finished() const;
};

}  // namespace taper
