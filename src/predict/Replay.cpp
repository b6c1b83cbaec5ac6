// SPDX-License-Identifier: Apache-2.0
#include "predict/Replay.hpp"

#include <algorithm>

namespace taper {

std::vector<SequenceState> initial_sequences(int sequences, int samples, std::int64_t prompt,
                                             int limit, int replicas) {
  std::vector<SequenceState> list;
  for (int i = 0; i < sequences; ++i)
    list.push_back({i, i / std::max(1, samples) % replicas, 0, static_cast<std::int32_t>(prompt), 0,
                    limit, i / std::max(1, samples)});
  return list;
}

ReplayTrace make_trace(const Workload& work, std::span<const Outcome> outcomes) {
  ReplayTrace trace{work, {outcomes.begin(), outcomes.end()}};
  std::stable_sort(trace.outcomes.begin(), trace.outcomes.end(),
                   [](const Outcome& a, const Outcome& b) { return a.sequence < b.sequence; });
  return trace;
}

GenerationRun start_replay(const ReplayTrace& trace, const LayoutShape& shape,
                           const SwitchCost& cost) {
  GenerationRun run(shape, cost, trace.work.slots_per_rank);
  const int samples = std::max(1, trace.work.samples);
  for (std::size_t i = 0; i < trace.outcomes.size(); ++i) {
    const Outcome& o = trace.outcomes[i];
    const int replica = static_cast<int>(i) / samples % shape.layout.replicas();
    const bool reads = static_cast<int>(i) % samples == 0;
    run.add(replica, {static_cast<std::int64_t>(i), 0, o.prompt, 0, std::max(1, o.response),
                      reads ? o.prompt : 0});
  }
  run.start();
  return run;
}

}  // namespace taper
