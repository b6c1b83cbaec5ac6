// SPDX-License-Identifier: Apache-2.0
#include "reshape/Reshaper.hpp"

#include <algorithm>
#include <set>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "reshape/SequenceText.hpp"

namespace taper {
namespace {
constexpr const char* kItem = "keys and values (switching)";
constexpr std::int64_t kFloat = sizeof(float);

int count_of(const std::vector<int>& values, int value) {
  return static_cast<int>(std::count(values.begin(), values.end(), value));
}

bool is_in(const std::vector<int>& sorted, int value) {
  return std::binary_search(sorted.begin(), sorted.end(), value);
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

void Reshaper::plan(MemoryPlan& plan, MemoryPhase phase, const EngineMemory& memory) {
  plan.add(kItem, phase, memory.kv_layer * kFloat);
}

Reshaper::Reshaper(const ParamTable& table, const DivisorChain& chain, const GroupCache& groups,
                   std::map<int, EngineLayout> layouts, const EngineMemory& memory, Arena& arena,
                   MemoryPhase phase, const ReshaperOptions& options)
    : table_(&table),
      chain_(&chain),
      groups_(&groups),
      layouts_(std::move(layouts)),
      stage_floats_(memory.kv_layer),
      stage_(arena.take<float>(kItem, phase, memory.kv_layer)),
      options_(options),
      mover_({options.round_bytes}) {
  for (const auto& problem : options.problems()) TAPER_FAIL(ExitCode::kBadInput, problem);
  geometry_.kv_heads = table.config().kv_heads;
  geometry_.bytes_per_page = page_floats(table.config().head_dim) * kFloat;
  geometry_.heads = [this](int tp, int index) { return ModelShard(*table_, tp, index).kv_heads(); };
  geometry_.blocks = [this](int tp) { return layout(tp).options.kv_blocks; };
  geometry_.max_running = [this](int tp) { return layout(tp).options.scheduler.max_running; };
}

const EngineLayout& Reshaper::layout(int tp) const {
  const auto found = layouts_.find(tp);
  TAPER_INSIST(found != layouts_.end(), "a layout with tensor-parallel degree "
                                            << tp << " (not among the degrees that this run "
                                            << "prepared)");
  return found->second;
}

SequenceList Reshaper::meet(const LayoutChange& change, const Engine& engine) const {
  return taper::meet(groups_->world(), change, engine.scheduler());
}

// The cached group of the ranks that a change ties to this one; all ranks where there is none.
const Group& Reshaper::component_group(const std::vector<int>& roots) const {
  // Components that are nodes of the tree have a group of their own. Where one is not, all ranks
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
  const std::int64_t layers = table_->config().layers, round = options_.round_bytes;
  std::int64_t messages = 0, states = 0;
  for (std::size_t r = 0; r < sent.size(); ++r)
    messages = std::max(messages,
                        std::min(sent[r] * layers, round) + std::min(received[r] * layers, round));
  for (std::size_t i = 0; i < step.sequences.size(); ++i)
    if (step.travels(i)) states += 2 * (96 + 12 * std::int64_t{step.sequences[i].length});
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

// Layer by layer, or several at a time where they fit the staging memory: all pages of a layer that
// this rank will hold elsewhere than now are staged, then written to their new places. The regions
// of the layers do not overlap, so a layer can change its geometry in place.
void Reshaper::move_kv(const Step& step, const Engine& engine, ReshapeReport& report) {
  const Group& group = component_group(step.roots);
  const KvPlan& kv = step.kv;
  const int layers = table_->config().layers, heads = geometry_.kv_heads;
  const int pieces = static_cast<int>(kv.needed.size());
  const std::int64_t page = geometry_.bytes_per_page / kFloat;
  const int after = step.change.to.groups()[step.change.to.replica_of(step.rank)].tp;
  const int before = step.change.from.groups()[step.change.from.replica_of(step.rank)].tp;
  const Range held = this->heads(before, chain_->shard_index(step.rank, before)),
              wanted = this->heads(after, chain_->shard_index(step.rank, after));

  // Transfers within this group of ranks; staging slots of the pieces that this rank needs.
  std::vector<PieceMove> transfers;
  for (const PieceMove& move : kv.transfers)
    if (group.index_of(move.to) >= 0) transfers.push_back(move);
  std::vector<int> slot(pieces, -1), mine;
  std::vector<std::int64_t> counts(step.roots.size(), 0);
  for (const auto& ranks : kv.needed)
    for (const int r : ranks) counts[r] += group.index_of(r) >= 0 ? 1 : 0;
  for (int p = 0; p < pieces; ++p)
    if (is_in(kv.needed[p], step.rank)) {
      slot[p] = static_cast<int>(mine.size());
      mine.push_back(p);
    }
  // Layers at a time, the same on all ranks: as many as fit what each of them is sure to have.
  int chunk = layers;
  for (const int r : group.world_ranks()) {
    const int tp = step.change.to.groups()[step.change.to.replica_of(r)].tp;
    const std::int64_t room =
        std::int64_t{geometry_.blocks(tp)} * this->heads(tp, chain_->shard_index(r, tp)).size();
    if (counts[r] > 0)
      chunk = static_cast<int>(std::clamp<std::int64_t>(room / counts[r], 1, chunk));
  }
  TAPER_ENSURE(counts[step.rank] * page * chunk <= stage_floats_);

  const BlockPool old_pool = engine.pool(), new_pool = engine.pool_for(layout(after));
  const auto old_page = [&](int layer, int p) {
    return old_pool.page(layer, kv.blocks[p / heads].from, p % heads - held.begin);
  };
  const std::vector<std::int64_t> bytes(static_cast<std::size_t>(pieces) * chunk,
                                        geometry_.bytes_per_page);
  std::int64_t planned_out = 0, planned_in = 0;
  for (int first = 0; first < layers; first += chunk) {
    const int count = std::min(chunk, layers - first);
    std::vector<PieceMove> moves;
    for (int l = 0; l < count; ++l)
      for (const PieceMove& move : transfers)
        moves.push_back({l * pieces + move.piece, move.from, move.to});
    const auto stage = [&](int l, int p) {
      return stage_ + (l * static_cast<std::int64_t>(mine.size()) + slot[p]) * page;
    };
    for (const PieceMove& move : moves) {
      planned_out += move.from == step.rank ? geometry_.bytes_per_page : 0;
      planned_in += move.to == step.rank ? geometry_.bytes_per_page : 0;
    }
    const MoveStatistics moved = mover_.move(
        group, moves, bytes,
        [&](int piece) { return old_page(first + piece / pieces, piece % pieces); },
        [&](int piece) { return stage(piece / pieces, piece % pieces); });
    report.bytes_sent += moved.bytes_sent;
    report.bytes_received += moved.bytes_received;
    for (int l = 0; l < count; ++l)
      for (const int p : mine)
        if (is_in(kv.held[p], step.rank)) {
          std::copy_n(old_page(first + l, p), page, stage(l, p));
          report.bytes_local += geometry_.bytes_per_page;
        }
    for (int l = 0; l < count; ++l)
      for (const int p : mine)
        std::copy_n(stage(l, p), page,
                    new_pool.page(first + l, kv.blocks[p / heads].to, p % heads - wanted.begin));
  }
  if (report.bytes_sent != planned_out || report.bytes_received != planned_in)
    TAPER_FAIL(ExitCode::kFailure, "a change of layout moved "
                                       << report.bytes_sent << " bytes out and "
                                       << report.bytes_received << " in, planned were "
                                       << planned_out << " and " << planned_in);
}

// Every rank of a new replica gets the host state of its sequences, in the order of the list.
void Reshaper::move_states(const Step& step, Engine& engine, ReshapeReport& report) {
  const Timer timer;
  const Group& group = component_group(step.roots);
  const int replica = step.change.to.replica_of(step.rank),
            old_replica = step.change.from.replica_of(step.rank);
  // Numbers of the sequences of each replica before the change, in the order of its engine.
  std::map<int, Sequence> states;
  {
    std::vector<int> numbers;
    for (std::size_t i = 0; i < step.sequences.size(); ++i)
      if (step.sequences[i].replica == old_replica) numbers.push_back(static_cast<int>(i));
    std::size_t next = 0;
    for (const Sequence& s : engine.scheduler().running()) states[numbers.at(next++)] = s;
    for (const Sequence& s : engine.scheduler().waiting()) states[numbers.at(next++)] = s;
    TAPER_ENSURE(next == numbers.size());
  }
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
    running.back().blocks = r.blocks;
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
