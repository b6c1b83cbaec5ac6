// SPDX-License-Identifier: Apache-2.0
#include "planner/Candidates.hpp"

#include <algorithm>
#include <map>

namespace taper {
bool speeds_up(const LayoutShape& from, std::span<const ReplicaLoad> loads, const LayoutShape& to) {
  const auto& before = from.layout.groups();
  // More replicas run more of those that wait.
  if (to.layout.replicas() > from.layout.replicas())
    for (const ReplicaLoad& load : loads)
      if (load.waiting > 0) return true;
  for (std::size_t h = 0; h < to.curves.size(); ++h) {
    const LayoutGroup& group = to.layout.groups()[h];
    ReplicaLoad sum;
    std::int64_t slowest = 0;
    for (std::size_t g = from.layout.replica_of(group.first);
         g < before.size() && before[g].first < group.end(); ++g) {
      const ReplicaLoad& load = loads[g];
      const bool merges = group.contains(before[g]);
      const int parts = merges ? 1 : before[g].tp / group.tp;
      sum.running += (load.running + parts - 1) / parts;
      sum.waiting += load.waiting / parts;
      sum.context += load.context / parts;
      slowest = std::max(slowest, from.curves[g]->token_ns(load.running, load.context));
    }
    if (before[from.layout.replica_of(group.first)] == group) continue;
    if (sum.running > 0 && to.curves[h]->token_ns(sum.running, sum.context) < slowest) return true;
  }
  return false;
}

bool is_uneven(const Layout& layout, std::span<const ReplicaLoad> loads) {
  std::map<int, std::pair<int, int>> range;  // fewest and most sequences of the groups of a degree
  for (std::size_t r = 0; r < loads.size(); ++r) {
    const int alive = loads[r].running + loads[r].waiting;
    auto& [fewest, most] = range.try_emplace(layout.groups()[r].tp, alive, alive).first->second;
    fewest = std::min(fewest, alive);
    most = std::max(most, alive);
  }
  return std::any_of(range.begin(), range.end(), [](const auto& degree) {
    return degree.second.second >= degree.second.first + 2;
  });
}

int crossing(const LayoutShape& from, const LayoutShape& to, std::int64_t mean_context,
             int max_alive) {
  const auto step = [&](const LayoutShape& shape, int alive) {
    const int replicas = shape.layout.replicas();
    const int batch = (alive + replicas - 1) / replicas;
    return shape.curves.front()->token_ns(batch, batch * mean_context);
  };
  int low = 0, high = max_alive + 1;  // faster at low (or 0), not at high
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (step(to, middle) < step(from, middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace taper
