// SPDX-License-Identifier: Apache-2.0
#include "planner/Scenarios.hpp"

#include <algorithm>
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

void Scenarios::begin(std::int64_t iteration, int share) {
  iteration_ = iteration;
  share_ = static_cast<std::uint32_t>(share);
  sequences_.clear();
  prompts_.clear();
}

std::uint32_t Scenarios::uniform(Table& table, std::size_t index, int scenario) {
  while (table.size() <= index * count_ + scenario) {
    const std::size_t next = table.size();
    const RandomKey key{RandomPurpose::kScenario,
                        static_cast<std::uint64_t>(iteration_),
                        next / count_,
                        next % count_,
                        &table == &prompts_ ? 1u : 0u,
                        0};
    const std::uint64_t bits = random_.bits(key);
    table.push_back(static_cast<std::uint32_t>(bits >> 32));
    table.push_back(static_cast<std::uint32_t>(bits));
  }
  return table[index * count_ + scenario];
}

// The low bits decide whether the number is the prompt's: lengths hardly depend on them.
std::uint32_t Scenarios::uniform(std::size_t place, const SequenceState& s, int scenario) {
  const std::uint32_t own = uniform(sequences_, place, scenario);
  const bool shares = s.owner >= 0 && (own & 0xffff) < share_;
  return shares ? uniform(prompts_, static_cast<std::size_t>(s.owner), scenario) : own;
}

GenerationRun Scenarios::run(int scenario, std::span<const SequenceState> sequences,
                             const LayoutShape& shape, const SwitchCost& cost,
                             const LengthModel& lengths, int slots_per_rank) {
  GenerationRun run(shape, cost, slots_per_rank);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const SequenceState& s = sequences[i];
    const int limit = std::max(s.response + 1, s.limit);
    const int length = std::min(limit, lengths.draw(s.response, uniform(i, s, scenario)));
    run.add(s.replica, {s.id, s.context, s.prompt, s.response, length - s.response,
                        s.context > 0 ? 0 : s.prompt + s.response});
  }
  run.start();
  return run;
}

}  // namespace taper
