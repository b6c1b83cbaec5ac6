// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "comm/PieceMover.hpp"
#include "kvcache/BlockPool.hpp"
#include "reshape/KvPlan.hpp"

namespace taper::detail {

// The KV cache of one rank in one layout: its pages and the heads of the model that they hold.
struct KvSide {
  BlockPool pool;
  Range heads;
};

// One rank's part in a change of keys and values, some layers at a time: fetch() and copy_own()
// stage all pages that this rank will hold elsewhere than now, write() puts them to their new
// places. The regions of layers do not overlap, so a layer can change its geometry in place once
// its pages are staged.
class KvStaging {
 public:
  // `group`: the ranks that the change ties to this one, `rank` of the world. `stage`: floats() for
  // each layer of a chunk; `parcels`: parcel_floats() for each, or null if the host reaches the
  // pages themselves. Both are memory of the GPU if the group connects GPUs (Group::devices), else
  // of the host. Refers to exec, the plan and the group.
  KvStaging(const Exec& exec, const KvPlan& plan, int kv_heads, const Group& group, int rank,
            KvSide before, KvSide after, float* stage, float* parcels);

  // Of the staging memory, per layer: for pages that this rank will hold, and for those it sends.
  std::int64_t floats() const { return static_cast<std::int64_t>(mine_.size()) * page_; }
  std::int64_t parcel_floats() const { return static_cast<std::int64_t>(sent_.size()) * page_; }
  // Bytes that this rank sends to others and receives from them, per layer.
  std::int64_t bytes_out() const;
  std::int64_t bytes_in() const;

  // Stages what other ranks hold of layers [layers.begin, layers.end). Collective over the group.
  MoveStatistics fetch(PieceMover& mover, Range layers) const;
  // Stages what this rank holds already; returns the bytes.
  std::int64_t copy_own(Range layers) const;
  // Writes the staged pages to their places in the new layout. Only after fetch() and copy_own().
  void write(Range layers) const;

 private:
  const float* old_page(int layer, int piece) const;
  float* new_page(int layer, int piece) const;
  float* staged(int layer_of_chunk, int piece) const {
    return stage_ + layer_of_chunk * floats() + slot_[piece] * page_;
  }
  float* parcel(int layer_of_chunk, std::int64_t place) const {
    return parcels_ + layer_of_chunk * parcel_floats() + place * page_;
  }
  void pack(Range layers, const std::map<int, std::int64_t>& parcels) const;
  MoveStatistics fetch_through_host(PieceMover& mover, Range layers) const;
  void take_slot(int piece);
#if defined(TAPER_CUDA)
  // An exchange between GPUs: what a rank sends to another one is in one piece of the parcels, and
  // what it receives in one piece of the stage.
  struct Pass {
    std::map<int, std::int64_t> parcels;  // pieces that this rank sends, and their places
    std::vector<std::int64_t> to, from;   // floats, by rank of the group
    std::int64_t first_slot;              // of what is received
  };
  void plan_passes();
  MoveStatistics fetch_between_devices(Range layers) const;
#endif

  const Exec& exec_;
  const KvPlan& plan_;
  int kv_heads_;
  const Group& group_;
  int rank_;
  KvSide before_, after_;
  float *stage_, *parcels_;
  std::int64_t page_;                 // floats
  std::vector<PieceMove> transfers_;  // of one layer, within the group
  std::vector<int> mine_;             // pieces that this rank needs
  std::vector<std::int64_t> slot_;    // by piece: its place among them
  std::map<int, std::int64_t> sent_;  // pieces that this rank sends, and their places
#if defined(TAPER_CUDA)
  std::vector<Pass> passes_;
#endif
};

}  // namespace taper::detail
