// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "reshape/Meeting.hpp"
#include "shard/RankGrid.hpp"
#include "shard/ReshapePlan.hpp"
#include "shard/Shard.hpp"

namespace taper {

// What a plan needs to know of the replicas of any layout.
struct KvGeometry {
  int kv_heads = 0;                 // of the model
  std::int64_t bytes_per_page = 0;  // of one layer and KV head
  // KV heads that shard `index` of degree `tp` reads.
  std::function<Range(int tp, int index)> heads;
  // Blocks of a replica of degree tp, and sequences that it may run.
  std::function<int(int tp)> blocks;
  std::function<int(int tp)> max_running;
};

// The sequences of one replica of the layout after, by number in the list of the meeting.
struct ReplicaPlan {
  struct Running {
    int sequence = 0;
    std::vector<std::int32_t> blocks;
  };
  std::vector<Running> running;  // with their keys and values, oldest first
  // Those to be recomputed, then those that waited before.
  std::vector<int> waiting;
  std::int64_t recomputed_positions = 0;
};

// A block that gets a new place: every KV head of it, in all layers.
struct BlockMove {
  int from_replica = 0, to_replica = 0;
  std::int32_t from = 0, to = 0;
  friend bool operator==(const BlockMove&, const BlockMove&) = default;
};

// Everything that a change of layout does to keys and values, the same on every rank. Blocks that
// several sequences share travel once per replica and stay shared.
struct KvPlan {
  std::vector<ReplicaPlan> replicas;  // of the layout after
  std::vector<BlockMove> blocks;
  std::int64_t bytes = 0;  // of the transfers, so of one layer

  // Transfers of one layer between ranks: piece = index in `blocks` * kv_heads + head.
  std::vector<PieceMove> transfers;
  Ownership needed;  // by piece
  Ownership held;
};

// Sequences without room (blocks or running slots) in their new replica are recomputed. Sequences
// of a group that stays as it is keep their blocks. Pure. Throws Error if a destination is no
// replica.
KvPlan plan_kv(const LayoutChange& change, const DivisorChain& chain, const KvGeometry& geometry,
               const SequenceList& sequences, std::span<const Destination> destinations);

// The components of a change: sets of ranks between which sequences or shards move. By rank, the
// lowest rank of its component; a rank that nothing happens to is alone in its own.
std::vector<int> components(const LayoutChange& change, const SequenceList& sequences,
                            std::span<const Destination> destinations);

}  // namespace taper
