// SPDX-License-Identifier: Apache-2.0
//
// Generations on several ranks whose layout is changed by force.
#pragma once

#include <mpi.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <optional>

#include "comm/Collectives.hpp"
#if defined(TAPER_CUDA)
#include "comm/nccl/Communicator.hpp"
#endif
#include "engine/EngineRun.hpp"
#include "reshape/Reshaper.hpp"
#include "support/ShareOut.hpp"

namespace taper::test {

enum class Kv { kMove, kRecompute, kMixed };

// A layout to go to at a step.
struct Switch {
  std::string layout;
  Kv kv = Kv::kMove;
  bool repack = false;
  bool rotate = false;  // every other sequence goes to the next replica
};

// A golden model on all ranks, ready for every layout of degrees from `smallest` on.
struct Fleet {
  Fleet(const std::string& name, const DivisorChain& divisor_chain, int smallest,
        const std::function<EngineOptions(const GoldenModel&, int tp)>& options_of,
        const ReshaperOptions& reshaper_options = {}, WeightType type = WeightType::kF32,
        const GroupOptions& group_options = {WaitMode::kYield}, const Precision& precision = {})
      : chain(divisor_chain),
        groups(GroupCache::for_chain(MPI_COMM_WORLD, chain, group_options)),
        model(name, groups.tp_group(smallest), type, {.precision = precision}) {
#if defined(TAPER_CUDA)
    if (std::getenv("TAPER_TEST_NCCL") != nullptr)  // a GPU per rank
      groups.connect_devices(nccl::Communicator::create(groups.world()));
#endif
    for (const int tp : chain.degrees()) {
      if (tp < smallest) continue;
      parallels.emplace(tp, ModelParallel(model.table, groups.tp_group(tp), precision.arithmetic));
      views.emplace(tp, ModelView(*model.packed, parallels.at(tp).shard()));
      layouts[tp] = {&views.at(tp), &parallels.at(tp), options_of(model, tp)};
      memory.cover(EngineMemory::of(model.table, parallels.at(tp), layouts[tp].options));
    }
    MemoryPlan plan;
    memory.add_memory(plan, MemoryPhase::kAlways);
    Reshaper::add_memory(plan, MemoryPhase::kAlways, memory, groups);
    arena = std::make_unique<Arena>(plan);
    engine = std::make_unique<Engine>(
        model.exec, layouts.at(smallest), memory, *arena, MemoryPhase::kAlways,
        ConstFloatMatrix(model.rope.data(), kPositions, model.config.head_dim));
    reshaper = std::make_unique<Reshaper>(model.table, chain, groups, layouts, memory, *arena,
                                          MemoryPhase::kAlways, reshaper_options);
    present = smallest;
  }

  int rank() const {
    return groups.world().rank();
  }
  Layout layout_of(const std::string& text) const {
    return parse_layout(text, chain);
  }
  bool leads() const {
    return engine->parallel().group().rank() == 0;
  }

  // Starts a generation in a layout; request i goes to replica i mod replicas.
  void begin(const std::string& layout, const SamplingOptions& sampling, const StopOptions& stops,
             const std::vector<Request>& requests) {
    now = layout_of(layout);
    const int replica = now->replica_of(rank());
    engine->rebind(layouts.at(now->groups()[replica].tp), replica, {}, {});
    engine->begin(sampling, stops);
    for (std::size_t i = 0; i < requests.size(); ++i)
      if (static_cast<int>(i) % now->replicas() == replica) engine->submit(requests[i]);
    seen = {};
  }

  void step() {
    if (!engine->idle()) engine->step();
    collect();
  }

  // The leader speaks for its group, so what has ended is collected before leaders change.
  void collect() {
    for (Completion& c : engine->take_completions())
      if (leads()) seen.responses[c.id] = std::move(c);
  }

  ReshapeReport reshape(const Switch& s) {
    const LayoutChange change{*now, layout_of(s.layout), 77};
    collect();
    const SequenceList list = reshaper->meet(change, *engine);
    auto destinations = share_out(change, list, s.repack);
    for (std::size_t i = 0; i < list.size(); ++i)
      destinations[i].keep_kv = s.kv == Kv::kMove || (s.kv == Kv::kMixed && i % 2 == 0);
    for (std::size_t i = 0; s.rotate && i < list.size(); i += 2)
      destinations[i].replica = (list[i].replica + 1) % change.to.replicas();
    waiting_seen = running_seen = reading_seen = preempted_seen = 0;
    for (const auto& q : list) {
      ++(q.running ? running_seen : waiting_seen);
      reading_seen += q.running && q.length == q.prompt_length && q.computed > 0;
      preempted_seen += !q.running && q.length > q.prompt_length;
    }
    const ReshapeReport report = reshaper->apply(change, list, destinations, *engine);
    if (report.done) now = change.to;
    return report;
  }

  // The rest of the generation.
  void finish() {
    while (!engine->idle()) step();
  }

  DivisorChain chain;
  GroupCache groups;
  GoldenModel model;
  std::map<int, ModelParallel> parallels;
  std::map<int, ModelView> views;
  std::map<int, EngineSetup> layouts;
  EngineMemory memory;
  std::unique_ptr<Arena> arena;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Reshaper> reshaper;
  int present = 1;
  std::optional<Layout> now;
  Generation seen;  // responses that ended while this rank was a leader
  int waiting_seen = 0, running_seen = 0, reading_seen = 0, preempted_seen = 0;  // at the last one
};

// What differs between a reference and the responses that all ranks have seen together; empty if
// nothing does. Collective over the world.
inline std::string difference(const Generation& reference, const Fleet& fleet) {
  Generation expected;
  for (const auto& [key, c] : fleet.seen.responses) {
    const auto at = reference.responses.find(key);
    if (at == reference.responses.end()) return "an unknown response";
    expected.responses.insert(*at);
  }
  std::string text = difference(expected, fleet.seen);
  std::vector<std::int64_t> count{static_cast<std::int64_t>(fleet.seen.responses.size())};
  all_reduce_sum(fleet.groups.world(), count);
  if (text.empty() && count[0] != static_cast<std::int64_t>(reference.responses.size()))
    text = std::to_string(count[0]) + " of " + std::to_string(reference.responses.size()) +
           " responses";
  return text;
}

}  // namespace taper::test
