// SPDX-License-Identifier: Apache-2.0
#include "planner/Scenarios.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace taper {

namespace {

// Numbers the prompts of one replica after the other: so many neighbors have the same ones.
class PromptNumbers {
 public:
  explicit PromptNumbers(int readers) : readers_(std::max(1, readers)) {}

  std::int64_t first() const { return first_; }
  void next_replica(std::int64_t prompts) {
    most_ = std::max(most_, prompts);
    if (++replicas_ % readers_ == 0) next_block();
  }
  void next_block() {
    first_ += std::exchange(most_, 0);
    replicas_ = 0;
  }

 private:
  int readers_, replicas_ = 0;
  std::int64_t first_ = 0, most_ = 0;
};

}  // namespace

std::vector<SequenceState> expand(const Snapshot& snapshot, const ExpandOptions& options) {
  std::vector<SequenceState> list;
  const auto add = [&](std::size_t replica, std::int64_t context, std::int64_t prompt,
                       std::int64_t response, std::int64_t owner) {
    list.push_back({static_cast<std::int64_t>(list.size()), static_cast<std::int32_t>(replica),
                    static_cast<std::int32_t>(context), static_cast<std::int32_t>(prompt),
                    static_cast<std::int32_t>(response), options.limit, owner});
  };
  PromptNumbers owners(options.readers);
  for (std::size_t r = 0; r < snapshot.replicas.size(); ++r) {
    const ReplicaSnapshot& s = snapshot.replicas[r];
    std::int64_t lowest = 0;
    const int running = s.running();
    for (int b = 0; b < ReplicaSnapshot::kBuckets; ++b)
      lowest += static_cast<std::int64_t>(s.lengths[b]) << b;
    const std::int64_t prompt = running == 0
                                    ? options.mean_prompt
                                    : (static_cast<std::int64_t>(s.context) - s.response) / running;
    const std::int64_t prompts = std::clamp<std::int64_t>(s.prompts, 1, std::max(1, running));
    std::int64_t place = 0;
    for (int b = 0; b < ReplicaSnapshot::kBuckets; ++b) {
      const std::int64_t low = std::int64_t{1} << b;
      std::int64_t response = lowest == 0 ? 0 : low * s.response / lowest;
      response = std::clamp<std::int64_t>(response, b == 0 ? 0 : low, 2 * low - 1);
      response = std::min<std::int64_t>(response, options.limit - 1);
      for (int i = 0; i < s.lengths[b]; ++i)
        add(r, std::max<std::int64_t>(1, prompt + response), prompt, response,
            owners.first() + place++ * prompts / running);
    }
    owners.next_replica(running > 0 ? prompts : 0);
  }
  owners.next_block();
  const int samples = std::max(1, options.samples / std::max(1, options.readers));
  for (std::size_t r = 0; r < snapshot.replicas.size(); ++r) {
    const int waiting = snapshot.replicas[r].waiting;
    for (int i = 0; i < waiting; ++i)
      add(r, 0, options.mean_prompt, 0, owners.first() + i / samples);
    owners.next_replica((waiting + samples - 1) / samples);
  }
  return list;
}

void Scenarios::begin(std::int64_t iteration, int share, const Surplus& surplus, int ranks) {
  iteration_ = iteration;
  surplus_ = surplus;
  ranks_ = ranks;
  share_ = static_cast<std::uint32_t>(share);
  for (Table* table : {&sequences_, &prompts_, &replicas_}) table->pairs.clear();
}

std::uint32_t Scenarios::uniform(Table& table, std::size_t index, int scenario) {
  const auto pair = static_cast<std::size_t>(scenario / 2);
  if (table.pairs.size() <= pair) table.pairs.resize(pair + 1);
  std::vector<std::uint64_t>& numbers = table.pairs[pair];
  while (numbers.size() <= index)
    numbers.push_back(
        random_.bits({RandomPurpose::kScenario, static_cast<std::uint64_t>(iteration_),
                      numbers.size(), 2 * pair, table.key, 0}));
  return static_cast<std::uint32_t>(scenario % 2 == 0 ? numbers[index] >> 32 : numbers[index]);
}

// The low bits decide whether the number is the prompt's: lengths hardly depend on them.
std::uint32_t Scenarios::uniform(std::size_t place, const SequenceState& s, int scenario) {
  const std::uint32_t own = uniform(sequences_, place, scenario);
  const bool shares = s.owner >= 0 && (own & 0xffff) < share_;
  return shares ? uniform(prompts_, static_cast<std::size_t>(s.owner), scenario) : own;
}

// What ends before its length, as everybody in a race would know at once: the last one that counts
// ends it for all. Sequences of nobody known are left alone.
void Scenarios::cut_race(std::span<const SequenceState> sequences, int ranks,
                         std::vector<int>& lengths) const {
  std::map<std::int64_t, std::vector<int>> groups;
  for (std::size_t i = 0; i < sequences.size(); ++i)
    if (sequences[i].owner >= 0) groups[sequences[i].owner].push_back(lengths[i]);
  // When a group is complete, and when enough groups are.
  std::map<std::int64_t, int> ends;
  std::vector<int> order;
  for (auto& [owner, members] : groups) {
    const auto wanted = std::ssize(members) - surplus_.samples;
    std::sort(members.begin(), members.end());
    order.push_back(ends[owner] = wanted > 0 ? members[wanted - 1] : 0);
  }
  const auto wanted =
      std::ssize(order) - std::int64_t{surplus_.prompts} * ranks / std::max(1, ranks_);
  std::sort(order.begin(), order.end());
  const int last = wanted > 0 ? order[wanted - 1] : 0;
  for (std::size_t i = 0; i < sequences.size(); ++i)
    if (sequences[i].owner >= 0)
      lengths[i] = std::min({lengths[i], last, ends[sequences[i].owner]});
}

std::vector<int> Scenarios::lengths(int scenario, std::span<const SequenceState> sequences,
                                    const LengthModel& model) {
  std::vector<int> lengths;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const SequenceState& s = sequences[i];
    const int limit = std::max(s.response + 1, s.limit);
    lengths.push_back(std::min(limit, model.draw(s.response, uniform(i, s, scenario))));
  }
  return lengths;
}

PlayedGeneration Scenarios::play(int scenario, std::span<const SequenceState> sequences,
                                 const LayoutShape& shape, const SwitchCost& cost,
                                 const LengthModel& lengths, int slots_per_rank, StepPhase phase) {
  std::vector<int> ends = this->lengths(scenario, sequences, lengths);
  if (!surplus_.is_none()) cut_race(sequences, shape.layout.ranks(), ends);
  PlayedGeneration played(shape, cost, slots_per_rank);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const SequenceState& s = sequences[i];
    played.add(s.replica, {s.id, s.context, s.prompt, s.response, std::max(1, ends[i] - s.response),
                           s.context > 0 ? 0 : s.prompt + s.response});
  }
  played.start();
  if (phase == StepPhase::kAnywhere)
    for (std::size_t r = 0; r < played.replicas().size(); ++r)
      played.delay(static_cast<int>(r), left_ns(played.replicas()[r].step_ns(), r, scenario));
  return played;
}

std::int64_t Scenarios::arrival_ns(std::span<const std::int64_t> step_ns,
                                   std::span<const int> ranks, int count) {
  std::int64_t all = 0, waiting = 0;
  for (const int n : ranks) all += n;
  for (int k = 0; k < count; ++k) {
    std::int64_t last = 0, sum = 0;
    for (std::size_t r = 0; r < step_ns.size(); ++r) {
      const std::int64_t left = left_ns(step_ns[r], r, k);
      last = std::max(last, left);
      sum += ranks[r] * left;
    }
    waiting += last - sum / std::max<std::int64_t>(1, all);
  }
  return waiting / std::max(1, count);
}

}  // namespace taper
