// SPDX-License-Identifier: Apache-2.0
#include "simulate/FixedRules.hpp"

namespace taper {
namespace {

// 1, 2, 3, 4, 6, 8, 12, ... below `end`.
std::vector<int> thresholds(int end) {
  std::vector<int> list;
  for (int power = 1; power < end; power *= 2) {
    list.push_back(power);
    if (power > 1 && power + power / 2 < end) list.push_back(power + power / 2);
  }
  return list;
}

}  // namespace

FixedRules::FixedRules(const std::vector<int>& degrees, const DivisorChain& chain,
                       const SimulatedMachine& machine, int sequences)
    : machine_(machine) {
  for (const int tp : degrees)
    shapes_.push_back(resolve(Layout::uniform(tp, chain), machine.steps));
  for (std::size_t from = 0; from < shapes_.size(); ++from) {
    const LayoutShape* first = &shapes_[from];
    const bool repacks = first->layout.replicas() > 1;
    for (const int alive : thresholds(sequences)) {
      if (repacks) rules_.push_back({first, {{alive, first, Repack::kYes}}});
      for (std::size_t to = from + 1; to < shapes_.size(); ++to) {
        const SwitchRule climb{alive, &shapes_[to], Repack::kNo};
        rules_.push_back({first, {climb}});
        for (const int earlier : {2 * alive, 4 * alive})
          if (repacks && earlier < sequences)
            rules_.push_back({first, {{earlier, first, Repack::kYes}, climb}});
      }
    }
  }
}

std::vector<std::int64_t> FixedRules::times(const ReplayTrace& trace) const {
  std::vector<std::int64_t> times;
  for (const Rule& rule : rules_)
    times.push_back(start_replay(trace, *rule.first, machine_.cost).finish(rule.switches));
  return times;
}

}  // namespace taper
