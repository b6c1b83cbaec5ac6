// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "comm/GroupCache.hpp"
#include "comm/PieceMover.hpp"
#include "device/Arena.hpp"
#include "engine/Engine.hpp"
#include "reshape/KvPlan.hpp"
#include "reshape/Meeting.hpp"

namespace taper {

struct ReshaperOptions {
  // Most memory of a rank beyond its plan during a change: message buffers and sequence states.
  std::int64_t extra_bytes = std::int64_t{512} << 20;
  std::int64_t round_bytes = PieceMoverOptions().round_bytes;  // per exchange, each way

  std::vector<std::string> problems() const;
};

// What a change of layout did, on this rank; times in seconds.
struct ReshapeReport {
  bool done = false;               // false: it did not fit, everything is as before, on all ranks
  std::string problem;             // why it did not fit; empty if done
  std::int64_t bytes_planned = 0;  // keys and values between ranks, over all ranks
  std::int64_t bytes_sent = 0;     // by this rank
  std::int64_t bytes_received = 0;
  std::int64_t bytes_local = 0;           // copied within this rank
  std::int64_t positions_recomputed = 0;  // over all ranks
  std::int64_t extra_bytes = 0;           // beyond the memory plan, at the peak
  double lists_s = 0;                     // sequences sent between ranks
  double kv_s = 0;                        // keys and values moved
  double rebind_s = 0;                    // the engine put into the new layout
};

// Carries out changes of the tensor-parallel layout of running engines. Weights are views and
// groups are cached, so only keys and values move (needed minus held, page by page, unless they are
// recomputed) and the host state of sequences. No device memory is allocated and nothing is
// reloaded.
class Reshaper {
 public:
  // Adds the staging memory for one layer of keys and values to the plan.
  static void add_memory(MemoryPlan& plan, MemoryPhase phase, const EngineMemory& memory,
                         const GroupCache& groups);

  // `layouts`: how this rank runs at each degree that a layout may have. All references must
  // outlive the reshaper; `groups` must be made for_chain(chain).
  Reshaper(const ParamTable& table, const DivisorChain& chain, const GroupCache& groups,
           std::map<int, EngineSetup> layouts, const EngineMemory& memory, Arena& arena,
           MemoryPhase phase, const ReshaperOptions& options = {});

  // As meet() of Meeting.hpp. Collective over all ranks.
  SequenceList meet(const LayoutChange& change, const Engine& engine) const;

  // Brings the engine into the layout after the change, with the sequences that `destinations` give
  // to its replica. If it does not fit, all ranks keep the old layout. Every rank passes the
  // same change, list and destinations. Throws Error if the bytes moved differ from those
  // planned. Collective over all ranks, of which only those that something happens to communicate.
  ReshapeReport apply(const LayoutChange& change, const SequenceList& sequences,
                      std::span<const Destination> destinations, Engine& engine);

  const EngineSetup& layout(int tp) const;

 private:
  struct Step;
  Range heads(int tp, int index) const;
  std::int64_t extra_bytes(const Step& step) const;
  int layers_at_once(const Step& step, const Group& group) const;
  // Keys and values to their new pages. Collective over the component of this rank.
  void move_kv(const Step& step, const Engine& engine, ReshapeReport& report);
  // The states of sequences to the ranks of their new replicas, and the engine into its new layout.
  // Collective over the component of this rank.
  void move_states(const Step& step, Engine& engine, ReshapeReport& report);
  const Group& component_group(const std::vector<int>& roots) const;

  const ParamTable* table_;
  const DivisorChain* chain_;
  const GroupCache* groups_;
  std::map<int, EngineSetup> layouts_;
  KvGeometry geometry_;
  std::int64_t stage_floats_;
  float *stage_, *parcels_ = nullptr;  // parcels: only if the host cannot reach the pages
  ReshaperOptions options_;
  PieceMover mover_;
};

}  // namespace taper
