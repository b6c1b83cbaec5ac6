// SPDX-License-Identifier: Apache-2.0
#include "planner/SwitchCost.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace taper {
namespace {

bool overlap(const LayoutGroup& a, const LayoutGroup& b) {
  return a.first < b.end() && b.first < a.end();
}

struct Load {
  int sequences = 0;
  std::int64_t context = 0;
};

// Deals the sequences of a group that splits to its parts.
void deal(const Layout& from, const Layout& to, std::span<const SequenceState> sequences,
          std::vector<SequenceMove>& moves, const std::vector<std::size_t>& unplaced,
          std::vector<Load>& loads) {
  std::vector<std::size_t> order = unplaced;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(-sequences[a].context, sequences[a].id) <
           std::pair(-sequences[b].context, sequences[b].id);
  });
  for (const std::size_t i : order) {
    const LayoutGroup& group = from.groups()[sequences[i].replica];
    const int first = to.replica_of(group.first), last = to.replica_of(group.end() - 1);
    int best = first;
    for (int r = first + 1; r <= last; ++r)
      if (loads[r].sequences < loads[best].sequences ||
          (loads[r].sequences == loads[best].sequences && loads[r].context < loads[best].context))
        best = r;
    moves[i].to = best;
    ++loads[best].sequences;
    loads[best].context += sequences[i].context;
  }
}

// Moves sequences between groups of equal degree until their numbers differ by one at most.
void balance(const Layout& to, std::span<const SequenceState> sequences,
             std::vector<SequenceMove>& moves, std::vector<Load>& loads) {
  const auto& groups = to.groups();
  std::map<int, std::set<std::pair<int, int>>> by_load;  // of a degree: (sequences, replica)
  for (int r = 0; r < to.replicas(); ++r) by_load[groups[r].tp].emplace(loads[r].sequences, r);
  const auto is_full = [&](int replica) {
    const auto& peers = by_load[groups[replica].tp];
    return loads[replica].sequences >= peers.begin()->first + 2;
  };
  // Replicas that are not too full now never become so, their sequences stay.
  std::vector<std::uint8_t> full(groups.size());
  for (std::size_t r = 0; r < full.size(); ++r) full[r] = is_full(static_cast<int>(r)) ? 1 : 0;
  std::vector<std::tuple<std::int32_t, std::int64_t, std::size_t>> order;  // cheapest to move first
  for (std::size_t i = 0; i < sequences.size(); ++i)
    if (full[moves[i].to] != 0) order.emplace_back(sequences[i].context, sequences[i].id, i);
  std::sort(order.begin(), order.end());
  for (const auto& [context, id, i] : order) {
    const int here = moves[i].to;
    if (!is_full(here)) continue;
    auto& peers = by_load[groups[here].tp];
    const int emptiest = peers.begin()->second;
    moves[i].to = emptiest;
    for (const auto& [replica, change] : {std::pair{here, -1}, std::pair{emptiest, 1}}) {
      peers.erase({loads[replica].sequences, replica});
      loads[replica].sequences += change;
      peers.emplace(loads[replica].sequences, replica);
    }
  }
}

}  // namespace

LayoutShape resolve(const Layout& layout, const StepModel& steps) {
  LayoutShape shape{layout, {}};
  for (const LayoutGroup& group : layout.groups()) shape.curves.push_back(&steps.curve(group));
  return shape;
}

std::vector<SequenceMove> place_sequences(const Layout& from, const Layout& to, Repack repack,
                                          std::span<const SequenceState> sequences) {
  std::vector<SequenceMove> moves(sequences.size());
  std::vector<Load> loads(to.groups().size());
  std::vector<std::size_t> unplaced;
  std::vector<int> targets;  // by replica before; -1: its group splits
  for (const LayoutGroup& group : from.groups()) {
    const int target = to.replica_of(group.first);
    targets.push_back(to.groups()[target].end() < group.end() ? -1 : target);
  }
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const SequenceState& s = sequences[i];
    const int target = targets[s.replica];
    moves[i] = {s.id, s.replica, target, KvAction::kKeep};
    if (target < 0) {
      unplaced.push_back(i);
      continue;
    }
    ++loads[target].sequences;
    loads[target].context += s.context;
  }
  deal(from, to, sequences, moves, unplaced, loads);
  if (repack == Repack::kYes) balance(to, sequences, moves, loads);
  for (std::size_t i = 0; i < moves.size(); ++i)
    if (from.groups()[moves[i].from] != to.groups()[moves[i].to] && sequences[i].context > 0)
      moves[i].kv = KvAction::kMove;
  return moves;
}

std::int64_t SwitchCost::rendezvous_ns(int ranks) const {
  std::int64_t ns = 0;
  for (const RendezvousCost& r : profile_->rendezvous) {
    ns = r.ns;
    if (r.ranks >= ranks) break;
  }
  return ns;
}

const MoveCost& SwitchCost::move_cost(PairClass pair) const {
  static constexpr MoveCost kNone;
  for (const MoveCost& m : profile_->moves)
    if (m.pair == pair) return m;
  return profile_->moves.empty() ? kNone : profile_->moves.back();
}

// The class of the transfers from one group to another.
const MoveCost& SwitchCost::move_between(const LayoutGroup& a, const LayoutGroup& b) const {
  const int first = std::min(a.first, b.first);
  return move_cost(profile_->pair_of(first, std::max(a.end(), b.end()) - first));
}

// Ranks that meet: those of the largest group made or taken apart, or all if sequences leave
// their group's ranks.
int SwitchCost::meeting(const Layout& from, const Layout& to,
                        std::span<const SequenceMove> moves) const {
  const auto &before = from.groups(), &after = to.groups();
  int ranks = 1;
  for (const LayoutGroup& group : after) {
    const LayoutGroup& old = before[from.replica_of(group.first)];
    if (old != group) ranks = std::max({ranks, old.tp, group.tp});
  }
  for (const SequenceMove& m : moves)
    if (!overlap(before[m.from], after[m.to])) return from.ranks();
  return ranks;
}

// The busiest rank's time to send or receive what the moves ask for; shards nest, so a rank of the
// new group that was in the old one keeps the smaller of its two shards.
std::int64_t SwitchCost::transfer_ns(const Layout& from, const Layout& to, const Flows& flows,
                                     std::int64_t& kv_bytes) const {
  std::vector<std::int64_t> sends(from.ranks(), 0), receives(from.ranks(), 0);
  std::int64_t latency = 0, busiest = 0;
  for (const auto& [pair, positions] : flows) {
    const LayoutGroup &g = from.groups()[pair.first], &h = to.groups()[pair.second];
    const MoveCost& cost = move_between(g, h);
    const std::int64_t bytes = positions * profile_->kv_bytes_per_position;
    const std::int64_t kept = bytes / std::max(g.tp, h.tp);
    std::int64_t travel = 0;
    for (int rank = h.first; rank < h.end(); ++rank) {
      const std::int64_t missing = bytes / h.tp - (g.has(rank) ? kept : 0);
      receives[rank] += missing * cost.ps_per_byte / 1000;
      travel += missing;
    }
    for (int rank = g.first; rank < g.end(); ++rank)
      sends[rank] += travel / g.tp * cost.ps_per_byte / 1000;
    kv_bytes += travel;
    if (travel > 0) latency = std::max(latency, cost.latency_ns);
  }
  for (int rank = 0; rank < from.ranks(); ++rank)
    busiest = std::max({busiest, sends[rank], receives[rank]});
  return latency + busiest;
}

SwitchParts SwitchCost::price(const Layout& from, const LayoutShape& to,
                              std::span<const SequenceState> sequences,
                              std::span<SequenceMove> moves) const {
  Flows flows;
  std::vector<std::int64_t> read_again(to.curves.size(), 0);
  // Sequences of one replica stand together and mostly go to one replica.
  const SequenceMove* last = nullptr;
  std::int64_t* flow = nullptr;
  std::int64_t ps_per_byte = 0;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    SequenceMove& m = moves[i];
    if (m.kv == KvAction::kKeep) continue;
    const LayoutGroup &g = from.groups()[m.from], &h = to.layout.groups()[m.to];
    if (last == nullptr || last->from != m.from || last->to != m.to) {
      last = &m;
      flow = &flows[{m.from, m.to}];
      ps_per_byte = move_between(g, h).ps_per_byte;
    }
    const std::int64_t positions = sequences[i].context, page = profile_->block_size;
    const std::int64_t moved = (positions + page - 1) / page * page;
    const std::int64_t bytes = moved * profile_->kv_bytes_per_position / h.tp;
    const std::int64_t again = to.curves[m.to]->prefill_ns(positions, positions / 2);
    if (again < bytes * ps_per_byte / 1000) {
      m.kv = KvAction::kRecompute;
      read_again[m.to] += again;
    } else {
      m.kv = KvAction::kMove;
      *flow += moved;
    }
  }
  SwitchParts parts;
  parts.move = transfer_ns(from, to.layout, flows, parts.kv_bytes);
  parts.recompute = *std::max_element(read_again.begin(), read_again.end());
  parts.rendezvous = rendezvous_ns(meeting(from, to.layout, moves));
  parts.groups = profile_->groups_ns;
  parts.weights = profile_->weights_ns;
  parts.graphs = profile_->graphs_ns;
  return parts;
}

}  // namespace taper
