// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "comm/Group.hpp"
#include "engine/Scheduler.hpp"
#include "shard/Layout.hpp"

namespace taper {

// A change of layout that has been decided: the same on all ranks, which `hash` proves.
struct LayoutChange {
  Layout from, to;
  std::uint64_t hash = 0;
};

// What a meeting knows of one sequence.
struct ListedSequence {
  int replica = 0;  // of the layout before
  bool running = false;
  int samples = 1;        // > 1: a prompt that is still being read for several samples
  int computed = 0;       // positions in the KV cache
  int length = 0;         // tokens
  int prompt_length = 0;  // of them
  int limit = 0;          // of response tokens
  ResponseId id;          // of the first sample
  std::vector<std::int32_t> blocks;
};

// All sequences of all replicas at the meeting, replica by replica: the running ones, oldest first,
// then the waiting ones. The index in this list is a sequence's number for the change.
using SequenceList = std::vector<ListedSequence>;

// Where a sequence goes on, and whether its keys and values go with it or are recomputed there.
struct Destination {
  int replica = 0;  // of the layout after
  bool keep_kv = true;
};

// Tells all ranks what a change concerns before anything happens: compares the hash of the decision
// and exchanges the current lists of sequences. Responses that have ended in the meantime
// are not in them. Throws Error if hashes differ. Collective over `world`, the ranks of the
// layouts.
SequenceList meet(const Group& world, const LayoutChange& change, const Scheduler& scheduler);

}  // namespace taper
