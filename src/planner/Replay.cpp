// SPDX-License-Identifier: Apache-2.0
#include "planner/Replay.hpp"

#include <algorithm>

#include "planner/Dealer.hpp"

namespace taper {

std::vector<SequenceState> initial_sequences(int sequences, int samples, std::int64_t prompt,
                                             int limit, const Layout& layout) {
  std::vector<SequenceState> list;
  Dealer dealer(layout);
  samples = std::max(1, samples);
  for (int owner = 0; std::ssize(list) < sequences; ++owner) {
    const int next = std::min<int>(samples, sequences - static_cast<int>(list.size()));
    for (const Deal& deal : dealer.deal(next, prompt, limit))
      for (int i = 0; i < deal.samples; ++i)
        list.push_back({std::ssize(list), deal.replica, 0, static_cast<std::int32_t>(prompt), 0,
                        limit, owner});
  }
  return list;
}

ReplayTrace make_trace(const Workload& work, std::span<const Outcome> outcomes) {
  ReplayTrace trace{work, {outcomes.begin(), outcomes.end()}};
  std::stable_sort(trace.outcomes.begin(), trace.outcomes.end(),
                   [](const Outcome& a, const Outcome& b) { return a.row < b.row; });
  return trace;
}

PlayedGeneration start_replay(const ReplayTrace& trace, const LayoutShape& shape,
                              const SwitchCost& cost) {
  PlayedGeneration played(shape, cost, trace.work.slots_per_rank);
  const std::size_t samples = std::max(1, trace.work.samples), count = trace.outcomes.size();
  Dealer dealer(shape.layout);
  for (std::size_t first = 0; first < count; first += samples) {
    const auto dealt = dealer.deal(static_cast<int>(std::min(samples, count - first)),
                                   trace.outcomes[first].prompt, trace.work.max_new_tokens);
    std::size_t i = first;
    for (const Deal& deal : dealt)
      for (int k = 0; k < deal.samples; ++k, ++i) {
        const Outcome& o = trace.outcomes[i];
        played.add(deal.replica, {static_cast<std::int64_t>(i), 0, o.prompt, 0,
                                  std::max(1, o.response), k == 0 ? o.prompt : 0});
      }
  }
  played.start();
  return played;
}

}  // namespace taper
