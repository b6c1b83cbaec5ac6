// SPDX-License-Identifier: Apache-2.0
#include "reshape/Reshaper.hpp"

#include <algorithm>
#include <deque>
#include <list>
#include <set>
#include <utility>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "reshape/SequenceText.hpp"
#include "reshape/detail/KvStaging.hpp"

namespace taper {
namespace {
constexpr const char* kItem = "keys and values (switching)";
constexpr const char* kParcels = "keys and values (sent)";
constexpr std::int64_t kFloat = sizeof(float);

int count_of(const std::vector<int>& values, int value) {
  return static_cast<int>(std::count(values.begin(), values.end(), value));
}

// The sequences of an engine, which was replica `replica` at the meeting, by their numbers in its
// list: the list has them in the order of the engine.
std::map<int, Sequence> numbered_sequences(const Engine& engine, const SequenceList& list,
                                           int replica) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].replica == replica) numbers.push_back(static_cast<int>(i));
  std::map<int, Sequence> sequences;
  std::size_t next = 0;
  for (const Sequence& s : engine.scheduler().running()) sequences[numbers.at(next++)] = s;
  for (const Sequence& s : engine.scheduler().waiting()) sequences[numbers.at(next++)] = s;
  TAPER_ENSURE(next == numbers.size());
  return sequences;
}

}  // namespace

// One change on its way.
struct Reshaper::Step {
  const LayoutChange& change;
  const SequenceList& sequences;
  std::span<const Destination> destinations;
  KvPlan kv;
  std::vector<int> roots;  // component of each rank
  int rank = 0;            // this one

  // Sequences whose host state must travel: their group does not stay as it is.
  bool travels(std::size_t sequence) const {
    return !(change.from.groups()[sequences[sequence].replica] ==
             change.to.groups()[destinations[sequence].replica]);
  }
};

std::vector<std::string> ReshaperOptions::problems() const {
  if (extra_bytes < 0 || round_bytes < 1)
    return {"memory and messages of a layout change must have positive sizes"};
  return {};
}

// Pages pass through the host unless all GPUs are connected.
void Reshaper::add_memory(MemoryPlan& plan, MemoryPhase phase, const EngineMemory& memory,
                          const GroupCache& groups) {
  const MemoryKind kind =
      groups.world().connects_devices() ? MemoryKind::kModel : MemoryKind::kStaging;
  plan.add(kItem, phase, memory.kv_layer * kFloat, kind);
  if (ArenaMemory::kHasStaging) plan.add(kParcels, phase, memory.kv_layer * kFloat, kind);
}

Reshaper::Reshaper(const ParamTable& table, const DivisorChain& chain, const GroupCache& groups,
                   std::map<int, EngineSetup> layouts, const EngineMemory& memory, Arena& arena,
                   MemoryPhase phase, const ReshaperOptions& options)
    : table_(&table),
      chain_(&chain),
      groups_(&groups),
      layouts_(std::move(layouts)),
      stage_floats_(memory.kv_layer),
      stage_(arena.take<float>(kItem, phase, memory.kv_layer)),
      options_(options),
      mover_({options.round_bytes}) {
  if (ArenaMemory::kHasStaging) parcels_ = arena.take<float>(kParcels, phase, memory.kv_layer);
  require_no_problems(options.problems());
  geometry_.kv_heads = table.config().kv_heads;
  geometry_.bytes_per_page =
      page_floats(table.config().head_dim, layouts_.begin()->second.options.precision.kv_type) *
      kFloat;
  geometry_.heads = [this](int tp, int index) { return ModelShard(*table_, tp, index).kv_heads(); };
  geometry_.blocks = [this](int tp) { return layout(tp).options.kv_blocks; };
  geometry_.max_running = [this](int tp) { return layout(tp).options.scheduler.max_running; };
}

const EngineSetup& Reshaper::layout(int tp) const {
  const auto found = layouts_.find(tp);
  TAPER_INSIST(found != layouts_.end(), "a layout with tensor-parallel degree "
                                            << tp << " (not among the degrees that this run "
                                            << "prepared)");
  return found->second;
}

SequenceList Reshaper::meet(const LayoutChange& change, const Engine& engine) const {
  return taper::meet(groups_->world(), change, engine.scheduler());
}

// The cached group of the ranks that a change ties to this one; all ranks if there is none.
const Group& Reshaper::component_group(const std::vector<int>& roots) const {
  // Components that are nodes of the tree have a group of their own. If one is not, all ranks
  // move together.
  for (std::size_t r = 0; r < roots.size(); ++r) {
    const int root = roots[r], size = count_of(roots, root);
    if (!chain_->has(size) || root % size != 0) return groups_->world();
    for (int i = 0; i < size; ++i)
      if (roots[root + i] != root) return groups_->world();
  }
  const int size = count_of(roots, roots[groups_->world().world_rank()]);
  return groups_->tp_group(size);
}

// Memory beyond the plan that the change takes on the rank that needs most: known to every rank.
std::int64_t Reshaper::extra_bytes(const Step& step) const {
  std::vector<std::int64_t> sent(step.roots.size(), 0), received(sent);
  for (const PieceMove& move : step.kv.transfers) {
    sent[move.from] += geometry_.bytes_per_page;
    received[move.to] += geometry_.bytes_per_page;
  }
  // Messages exist for one round at a time. The states of sequences exist up to twice: as the text
  // that a leader sends, and as the texts that all ranks gather.
  const std::int64_t layers = table_->config().layers, round = options_.round_bytes;
  std::int64_t messages = 0, states = 0;
  for (std::size_t r = 0; r < sent.size(); ++r)
    messages = std::max(messages,
                        std::min(sent[r] * layers, round) + std::min(received[r] * layers, round));
  for (std::size_t i = 0; i < step.sequences.size(); ++i)
    if (step.travels(i)) states += 2 * sequence_bytes(step.sequences[i].length);
  return messages + states;
}

ReshapeReport Reshaper::apply(const LayoutChange& change, const SequenceList& sequences,
                              std::span<const Destination> destinations, Engine& engine) {
  const int rank = groups_->world().world_rank();
  Step step{change,
            sequences,
            destinations,
            plan_kv(change, *chain_, geometry_, sequences, destinations),
            components(change, sequences, destinations),
            rank};
  ReshapeReport report;
  report.extra_bytes = extra_bytes(step);
  if (report.extra_bytes > options_.extra_bytes) {
    report.problem = "a change to layout " + to_string(change.to) + " needs " +
                     format_bytes(static_cast<double>(report.extra_bytes)) +
                     " beyond the memory plan (" +
                     format_bytes(static_cast<double>(options_.extra_bytes)) +
                     " are allowed); the layout stays " + to_string(change.from);
    return report;
  }
  report.done = true;
  report.bytes_planned = step.kv.bytes * table_->config().layers;
  for (const ReplicaPlan& replica : step.kv.replicas)
    report.positions_recomputed += replica.recomputed_positions;
  // Nothing happens to this rank: its group stays, and no other rank waits for it in a collective
  // (which they would if the change were carried out in the group of all ranks).
  if (count_of(step.roots, step.roots[rank]) == 1 &&
      change.from.groups()[change.from.replica_of(rank)] ==
          change.to.groups()[change.to.replica_of(rank)] &&
      &component_group(step.roots) != &groups_->world()) {
    engine.set_replica(change.to.replica_of(rank));  // its number may be another
    return report;
  }
  Timer timer;
  move_kv(step, engine, report);
  report.kv_s = timer.seconds();
  move_states(step, engine, report);
  return report;
}

// Layers whose keys and values move at a time, the same on all ranks of the group: as many as fit
// the staging memory that each of them is sure to have.
int Reshaper::layers_at_once(const Step& step, const Group& group) const {
  std::vector<std::int64_t> pages(step.roots.size(), 0), parcels(step.roots.size(), 0);
  for (const auto& ranks : step.kv.needed)
    for (const int r : ranks) ++pages[r];
  if (parcels_ != nullptr) {
    std::set<std::pair<int, int>> sent;  // a piece may go to several ranks
    for (const PieceMove& move : step.kv.transfers)
      if (sent.emplace(move.piece, move.from).second) ++parcels[move.from];
  }
  int layers = table_->config().layers;
  for (const int r : group.world_ranks()) {
    // Pages of one layer of the full cache, which is what was staged for; a cache that is not full
    // leaves room for more layers.
    const auto limit = [&](const Layout& layout, std::int64_t count) {
      const int tp = layout.groups()[layout.replica_of(r)].tp;
      const std::int64_t room =
          std::int64_t{geometry_.blocks(tp)} * heads(tp, chain_->shard_index(r, tp)).size();
      if (count > 0) layers = static_cast<int>(std::clamp<std::int64_t>(room / count, 1, layers));
    };
    limit(step.change.to, pages[r]);
    limit(step.change.from, parcels[r]);
  }
  return layers;
}

void Reshaper::move_kv(const Step& step, const Engine& engine, ReshapeReport& report) {
  const Group& group = component_group(step.roots);
  const int before = step.change.from.groups()[step.change.from.replica_of(step.rank)].tp,
            after = step.change.to.groups()[step.change.to.replica_of(step.rank)].tp;
  const detail::KvStaging staging(
      engine.exec(), step.kv, geometry_.kv_heads, group, step.rank,
      {engine.pool(), heads(before, chain_->shard_index(step.rank, before))},
      {engine.pool_for(layout(after)), heads(after, chain_->shard_index(step.rank, after))}, stage_,
      parcels_);
  const int layers = table_->config().layers, chunk = layers_at_once(step, group);
  TAPER_ENSURE(staging.floats() * chunk <= stage_floats_);
  TAPER_ENSURE(parcels_ == nullptr || staging.parcel_floats() * chunk <= stage_floats_);
  for (int first = 0; first < layers; first += chunk) {
    const Range now{first, std::min(first + chunk, layers)};
    // All pages are staged before any is written: the new geometry overwrites the old pages.
    const MoveStatistics moved = staging.fetch(mover_, now);
    report.bytes_sent += moved.bytes_sent;
    report.bytes_received += moved.bytes_received;
    report.bytes_local += staging.copy_own(now);
    staging.write(now);
  }
  TAPER_INSIST(report.bytes_sent == staging.bytes_out() * layers &&
                   report.bytes_received == staging.bytes_in() * layers,
               "a change of layout moved " << report.bytes_sent << " bytes out and "
                                           << report.bytes_received << " in, planned were "
                                           << staging.bytes_out() * layers << " and "
                                           << staging.bytes_in() * layers);
}

void Reshaper::move_states(const Step& step, Engine& engine, ReshapeReport& report) {
  const Timer timer;
  const Group& group = component_group(step.roots);
  const int replica = step.change.to.replica_of(step.rank),
            old_replica = step.change.from.replica_of(step.rank);
  std::map<int, Sequence> states = numbered_sequences(engine, step.sequences, old_replica);
  // All ranks of a group hold the same states, so its first rank sends them.
  std::string mine;
  if (step.change.from.groups()[old_replica].first == step.rank)
    for (const auto& [number, state] : states)
      if (step.travels(static_cast<std::size_t>(number))) append_sequence(mine, state);
  const auto texts = all_gather_string(group, mine);
  for (int r = 0; r < group.size(); ++r) {
    const int world_rank = group.world_ranks()[r];
    const int source = step.change.from.replica_of(world_rank);
    if (texts[r].empty() || source == old_replica) continue;
    auto arrived = read_sequences(texts[r]);
    std::size_t next = 0;
    for (std::size_t i = 0; i < step.sequences.size(); ++i)
      if (step.sequences[i].replica == source && step.travels(i))
        states[static_cast<int>(i)] = std::move(arrived.at(next++));
  }
  report.lists_s = timer.seconds();

  const Timer rebinding;
  const ReplicaPlan& plan = step.kv.replicas[replica];
  std::list<Sequence> running;
  std::deque<Sequence> waiting;
  for (const auto& r : plan.running) {
    running.push_back(std::move(states.at(r.sequence)));
    running.back().blocks.assign(r.blocks.begin(), r.blocks.end());
  }
  for (const int number : plan.waiting) {
    waiting.push_back(std::move(states.at(number)));
    waiting.back().blocks.clear();
    waiting.back().computed = 0;
  }
  engine.rebind(layout(step.change.to.groups()[replica].tp), replica, std::move(running),
                std::move(waiting));
  report.rebind_s = rebinding.seconds();
}

Range Reshaper::heads(int tp, int index) const {
  return geometry_.heads(tp, index);
}

}  // namespace taper
