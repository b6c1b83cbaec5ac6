// SPDX-License-Identifier: Apache-2.0
#include "planner/PlayedGeneration.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace taper {

PlayedGeneration::PlayedGeneration(const LayoutShape& shape, const SwitchCost& cost,
                                   int slots_per_rank)
    : shape_(&shape), cost_(&cost), slots_per_rank_(slots_per_rank) {
  for (std::size_t r = 0; r < shape.curves.size(); ++r)
    replicas_.emplace_back(*shape.curves[r], slots(shape.layout.groups()[r]), 0);
}

void PlayedGeneration::start() {
  for (PlayedReplica& r : replicas_) r.start();
}

int PlayedGeneration::alive() const {
  int alive = 0;
  for (const PlayedReplica& r : replicas_) alive += r.alive();
  return alive;
}

std::int64_t PlayedGeneration::clock() const {
  std::int64_t clock = 0;
  for (const PlayedReplica& r : replicas_) clock = std::max(clock, r.clock());
  return clock;
}

std::int64_t PlayedGeneration::slowest_step_ns() const {
  std::int64_t step = 0;
  for (const PlayedReplica& r : replicas_) step = std::max(step, r.step_ns());
  return step;
}

void PlayedGeneration::advance(std::int64_t until) {
  for (PlayedReplica& r : replicas_) r.advance(until);
}

std::vector<std::int64_t> PlayedGeneration::ends() const {
  std::vector<std::int64_t> ends;
  ends.reserve(static_cast<std::size_t>(alive()));
  for (PlayedReplica copy : replicas_) copy.finish(&ends);
  std::sort(ends.begin(), ends.end());
  return ends;
}

void PlayedGeneration::advance_to(int alive, std::span<const std::int64_t> ends) {
  const int now = this->alive();
  if (now > alive) advance(ends[static_cast<std::size_t>(now - alive - 1)]);
}

std::int64_t PlayedGeneration::finish() {
  for (PlayedReplica& r : replicas_) r.finish();
  return clock();
}

std::int64_t PlayedGeneration::finish(std::span<const SwitchRule> rules,
                                      std::span<const std::int64_t> ends) {
  std::vector<std::int64_t> own;
  for (const SwitchRule& rule : rules) {
    if (rule.alive <= 0) break;
    if (alive() > rule.alive) {
      if (ends.empty()) ends = own = this->ends();
      advance_to(rule.alive, ends);
    }
    if (alive() == 0) break;
    switch_to(*rule.shape, rule.repack);
    ends = {};
  }
  return finish();
}

std::vector<SequenceState> PlayedGeneration::by_replica() const {
  std::vector<SequenceState> list;
  list.reserve(static_cast<std::size_t>(alive()));
  for (std::size_t r = 0; r < replicas_.size(); ++r)
    for (const SimulatedSequence& s : replicas_[r].sequences())
      list.push_back({s.id, static_cast<std::int32_t>(r), s.context, s.prompt, s.response, 0});
  return list;
}

std::vector<SequenceState> PlayedGeneration::states() const {
  std::vector<SequenceState> states = by_replica();
  std::sort(states.begin(), states.end(),
            [](const SequenceState& a, const SequenceState& b) { return a.id < b.id; });
  return states;
}

PlayedGeneration::Change PlayedGeneration::plan_change(const LayoutShape& to, Repack repack) const {
  const std::vector<SequenceState> list = by_replica();
  Change change{place_sequences(layout(), to.layout, repack, list), {}};
  change.cost = cost_->price(layout(), to, list, change.moves);
  return change;
}

void PlayedGeneration::apply(const LayoutShape& to, const Change& change) {
  const auto& before = layout().groups();
  const auto& after = to.layout.groups();
  const bool all_meet =
      std::any_of(change.moves.begin(), change.moves.end(), [&](const SequenceMove& m) {
        return before[m.from].end() <= after[m.to].first ||
               after[m.to].end() <= before[m.from].first;
      });
  const std::int64_t together = clock();
  std::vector<PlayedReplica> replicas;
  replicas.reserve(after.size());
  for (std::size_t r = 0; r < after.size(); ++r) {
    std::int64_t clock = all_meet ? together : 0;
    const auto first = static_cast<std::size_t>(layout().replica_of(after[r].first));
    for (std::size_t g = first; g < before.size() && before[g].first < after[r].end(); ++g)
      clock = std::max(clock, replicas_[g].clock());
    const bool same = before[first] == after[r];
    replicas.emplace_back(*to.curves[r], slots(after[r]),
                          clock + (same && !all_meet ? 0 : change.cost.total()));
  }
  std::vector<std::size_t> arrive(replicas.size(), 0);
  for (const SequenceMove& m : change.moves) ++arrive[m.to];
  for (std::size_t r = 0; r < replicas.size(); ++r) replicas[r].reserve(arrive[r]);
  auto move = change.moves.begin();
  for (const PlayedReplica& r : replicas_) {
    for (const SimulatedSequence& s : r.sequences()) replicas[(move++)->to].add(s);
    finished_before_ += r.ended();
  }
  replicas_ = std::move(replicas);
  for (PlayedReplica& r : replicas_) r.start();
  shape_ = &to;
  ++switches_;
}

Snapshot PlayedGeneration::snapshot(std::int64_t consultation, int samples) const {
  Snapshot snapshot{layout(), {}, clock(), consultation, switches_};
  std::int64_t before = finished_before_;  // counted with the first replica
  for (const PlayedReplica& r : replicas_) {
    std::array<std::int64_t, kLengthBuckets> lengths{};
    std::int64_t waiting = 0, context = 0, response = 0, longest = 0;
    std::set<std::int64_t> prompts;
    for (const SimulatedSequence& q : r.sequences()) {
      if (q.context == 0) {
        ++waiting;
        continue;
      }
      prompts.insert(q.id / samples);
      ++lengths[length_bucket(q.response)];
      context += q.context;
      response += q.response;
      longest = std::max<std::int64_t>(longest, q.context);
    }
    ReplicaSnapshot& s = snapshot.replicas.emplace_back();
    std::transform(lengths.begin(), lengths.end(), s.lengths.begin(), clamped<std::uint16_t>);
    s.context = clamped<std::uint32_t>(context);
    s.response = clamped<std::uint32_t>(response);
    s.longest = clamped<std::uint32_t>(longest);
    s.prompts = clamped<std::uint32_t>(static_cast<std::int64_t>(prompts.size()));
    s.finished = clamped<std::uint32_t>(r.ended() + std::exchange(before, 0));
    s.waiting = clamped<std::uint16_t>(waiting);
    s.drafts = r.drafts();
  }
  return snapshot;
}

}  // namespace taper
