// SPDX-License-Identifier: Apache-2.0
#include "predict/Scenarios.hpp"

#include <algorithm>

namespace taper {

std::vector<SequenceState> expand(const Snapshot& snapshot, std::int64_t mean_prompt, int limit) {
  std::vector<SequenceState> list;
  const auto add = [&](std::size_t replica, std::int64_t context, std::int64_t prompt,
                       std::int64_t response) {
    list.push_back({static_cast<std::int64_t>(list.size()), static_cast<std::int32_t>(replica),
                    static_cast<std::int32_t>(context), static_cast<std::int32_t>(prompt),
                    static_cast<std::int32_t>(response), limit});
  };
  for (std::size_t r = 0; r < snapshot.replicas.size(); ++r) {
    const ReplicaSnapshot& s = snapshot.replicas[r];
    std::int64_t lowest = 0;
    const int running = s.running();
    for (int b = 0; b < ReplicaSnapshot::kBuckets; ++b)
      lowest += static_cast<std::int64_t>(s.lengths[b]) << b;
    const std::int64_t prompt =
        running == 0 ? mean_prompt : (static_cast<std::int64_t>(s.context) - s.response) / running;
    for (int b = 0; b < ReplicaSnapshot::kBuckets; ++b) {
      const std::int64_t low = std::int64_t{1} << b;
      std::int64_t response = lowest == 0 ? 0 : low * s.response / lowest;
      response = std::clamp<std::int64_t>(response, b == 0 ? 0 : low, 2 * low - 1);
      response = std::min<std::int64_t>(response, limit - 1);
      for (int i = 0; i < s.lengths[b]; ++i)
        add(r, std::max<std::int64_t>(1, prompt + response), prompt, response);
    }
  }
  for (std::size_t r = 0; r < snapshot.replicas.size(); ++r)
    for (int i = 0; i < snapshot.replicas[r].waiting; ++i) add(r, 0, mean_prompt, 0);
  return list;
}

void Scenarios::begin(std::int64_t iteration) {
  iteration_ = iteration;
  table_.clear();
}

std::uint32_t Scenarios::uniform(std::size_t sequence, int scenario) {
  while (table_.size() <= sequence * count_ + scenario) {
    const std::size_t next = table_.size();
    const RandomKey key{RandomPurpose::kScenario,
                        static_cast<std::uint64_t>(iteration_),
                        next / count_,
                        next % count_,
                        0,
                        0};
    const std::uint64_t bits = random_.bits(key);
    table_.push_back(static_cast<std::uint32_t>(bits >> 32));
    table_.push_back(static_cast<std::uint32_t>(bits));
  }
  return table_[sequence * count_ + scenario];
}

GenerationRun Scenarios::run(int scenario, std::span<const SequenceState> sequences,
                             const LayoutShape& shape, const SwitchCost& cost,
                             const LengthModel& lengths, int slots_per_rank) {
  GenerationRun run(shape, cost, slots_per_rank);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const SequenceState& s = sequences[i];
    const int limit = std::max(s.response + 1, s.limit);
    const int length = std::min(limit, lengths.draw(s.response, uniform(i, scenario)));
    run.add(s.replica, {s.id, s.context, s.prompt, s.response, length - s.response,
                        s.context > 0 ? 0 : s.prompt + s.response});
  }
  run.start();
  return run;
}

}  // namespace taper
