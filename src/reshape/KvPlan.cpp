// SPDX-License-Identifier: Apache-2.0
#include "reshape/KvPlan.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/Error.hpp"

namespace taper {
namespace {

// Hands out the blocks of a new replica.
class Places {
 public:
  explicit Places(int blocks) : used_(blocks, false) {}

  int free() const { return static_cast<int>(used_.size()) - taken_; }
  void claim(std::int32_t block) {
    taken_ += used_[block] ? 0 : 1;
    used_[block] = true;
  }
  std::int32_t next() {
    while (used_[at_]) ++at_;
    claim(at_);
    return at_;
  }

 private:
  std::vector<bool> used_;
  int taken_ = 0;
  std::int32_t at_ = 0;
};

// Fills one replica: who keeps running there and in which blocks.
class ReplicaFiller {
 public:
  // `before`: the number of the replica in the layout before, -1 if its group is new.
  ReplicaFiller(int replica, int before, int blocks, int max_running)
      : replica_(replica), before_(before), places_(blocks), slots_(max_running) {}

  // Blocks of sequences that stay where they are stay too.
  void reserve(const ListedSequence& s) {
    if (stays(s))
      for (const auto block : s.blocks) places_.claim(block);
  }

  void place(const ListedSequence& s, int number, bool keep_kv, std::vector<BlockMove>& moves) {
    if (!s.running || s.computed == 0 || !keep_kv || s.samples > slots_ || !fits(s)) {
      (s.running ? recomputed_ : waiting_).push_back(number);
      positions_ += s.running ? s.computed : 0;
      return;
    }
    slots_ -= s.samples;
    plan_.running.push_back({number, {}});
    for (const auto block : s.blocks) {
      if (stays(s)) {
        plan_.running.back().blocks.push_back(block);
        continue;
      }
      const auto [at, is_new] = moved_.try_emplace({s.replica, block}, 0);
      if (is_new) {
        at->second = places_.next();
        moves.push_back({s.replica, replica_, block, at->second});
      }
      plan_.running.back().blocks.push_back(at->second);
    }
  }

  ReplicaPlan finish() {
    plan_.recomputed_positions = positions_;
    plan_.waiting = std::move(recomputed_);
    plan_.waiting.insert(plan_.waiting.end(), waiting_.begin(), waiting_.end());
    return std::move(plan_);
  }

 private:
  bool stays(const ListedSequence& s) const { return s.replica == before_; }
  bool fits(const ListedSequence& s) const {
    if (stays(s)) return true;
    int need = 0;
    for (const auto block : s.blocks) need += moved_.contains({s.replica, block}) ? 0 : 1;
    return need <= places_.free();
  }

  int replica_, before_;
  Places places_;
  int slots_;
  std::map<std::pair<int, std::int32_t>, std::int32_t> moved_;
  ReplicaPlan plan_;
  std::vector<int> recomputed_, waiting_;
  std::int64_t positions_ = 0;
};

// The ranks of a group whose shard holds a KV head, ascending.
std::vector<int> holders(const LayoutGroup& group, const DivisorChain& chain,
                         const KvGeometry& geometry, int head) {
  std::vector<int> ranks;
  for (int r = group.first; r < group.end(); ++r)
    if (geometry.heads(group.tp, chain.shard_index(r, group.tp)).contains(head)) ranks.push_back(r);
  return ranks;
}

// Per group, the holders of each head.
std::vector<Ownership> holders_of(const Layout& layout, const DivisorChain& chain,
                                  const KvGeometry& geometry) {
  std::vector<Ownership> all;
  for (const LayoutGroup& group : layout.groups()) {
    all.emplace_back();
    for (int head = 0; head < geometry.kv_heads; ++head)
      all.back().push_back(holders(group, chain, geometry, head));
  }
  return all;
}

}  // namespace

KvPlan plan_kv(const LayoutChange& change, const DivisorChain& chain, const KvGeometry& geometry,
               const SequenceList& sequences, std::span<const Destination> destinations) {
  TAPER_EXPECT(sequences.size() == destinations.size());
  const std::vector<bool> is_new = changed_groups(change.to, change.from);
  std::vector<ReplicaFiller> fillers;
  for (int g = 0; g < change.to.replicas(); ++g) {
    const auto [first, tp] = change.to.groups()[g];
    fillers.emplace_back(g, is_new[g] ? -1 : change.from.replica_of(first), geometry.blocks(tp),
                         geometry.max_running(tp));
  }
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    TAPER_INSIST(destinations[i].replica >= 0 && destinations[i].replica < change.to.replicas(),
                 "sequence " << i << " goes to replica " << destinations[i].replica << " (layout "
                             << to_string(change.to) << " has " << change.to.replicas() << ")");
    if (destinations[i].keep_kv) fillers[destinations[i].replica].reserve(sequences[i]);
  }
  KvPlan plan;
  for (std::size_t i = 0; i < sequences.size(); ++i)
    fillers[destinations[i].replica].place(sequences[i], static_cast<int>(i),
                                           destinations[i].keep_kv, plan.blocks);
  for (auto& filler : fillers) plan.replicas.push_back(filler.finish());

  const auto before = holders_of(change.from, chain, geometry),
             after = holders_of(change.to, chain, geometry);
  for (const BlockMove& move : plan.blocks)
    for (int head = 0; head < geometry.kv_heads; ++head) {
      plan.held.push_back(before[move.from_replica][head]);
      plan.needed.push_back(after[move.to_replica][head]);
    }
  const std::vector<std::int64_t> bytes(plan.held.size(), geometry.bytes_per_page);
  plan.transfers = plan_moves(plan.held, plan.needed, bytes);
  plan.bytes = static_cast<std::int64_t>(plan.transfers.size()) * geometry.bytes_per_page;
  return plan;
}

std::vector<int> components(const LayoutChange& change, const SequenceList& sequences,
                            std::span<const Destination> destinations) {
  std::vector<int> root(change.to.ranks());
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](int r) {
    while (root[r] != r) r = root[r];
    return r;
  };
  const auto join = [&](int a, int b) {
    a = find(a);
    b = find(b);
    root[std::max(a, b)] = std::min(a, b);
  };
  const auto join_changed = [&](const Layout& layout, const Layout& other) {
    const std::vector<bool> changed = changed_groups(layout, other);
    for (int i = 0; i < layout.replicas(); ++i) {
      const LayoutGroup& g = layout.groups()[i];
      for (int r = g.first; changed[i] && r < g.end(); ++r) join(g.first, r);
    }
  };
  join_changed(change.to, change.from);
  join_changed(change.from, change.to);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const LayoutGroup& a = change.from.groups()[sequences[i].replica];
    const LayoutGroup& b = change.to.groups()[destinations[i].replica];
    if (a == b) continue;
    for (int r = a.first; r < a.end(); ++r) join(a.first, r);
    for (int r = b.first; r < b.end(); ++r) join(a.first, r);
  }
  for (int r = 0; r < static_cast<int>(root.size()); ++r) root[r] = find(r);
  return root;
}

}  // namespace taper
