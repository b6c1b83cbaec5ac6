// SPDX-License-Identifier: Apache-2.0
#include "predict/Candidates.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace taper {
namespace {

bool contains(const LayoutGroup& outer, const LayoutGroup& inner) {
  return outer.first <= inner.first && inner.end() <= outer.end();
}

// When the sequences of the groups within a place end as one group of it, by scenario.
std::vector<std::int64_t> merged_ends(const std::vector<GenerationRun>& runs,
                                      const LayoutGroup& place, const StepModel& steps,
                                      int slots_per_rank) {
  std::vector<std::int64_t> ends;
  for (const GenerationRun& run : runs) {
    const Layout& layout = run.layout();
    ReplicaRun merged(steps.curve(place), slots_per_rank * place.tp, 0);
    for (int g = layout.replica_of(place.first);
         g < layout.replicas() && contains(place, layout.groups()[g]); ++g)
      for (const SimulatedSequence& s : run.replicas()[g].sequences()) merged.add(s);
    merged.start();
    merged.finish();
    ends.push_back(merged.clock());
  }
  return ends;
}

}  // namespace

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
      const bool merges = contains(group, before[g]);
      const int parts = merges ? 1 : before[g].tp / group.tp;
      sum.running += (load.running + parts - 1) / parts;
      sum.waiting += load.waiting / parts;
      sum.context += load.context / parts;
      slowest = std::max(slowest, from.curves[g]->decode_ns(load.running, load.context));
    }
    if (before[from.layout.replica_of(group.first)] == group) continue;
    if (sum.running > 0 && to.curves[h]->decode_ns(sum.running, sum.context) < slowest) return true;
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
    return shape.curves.front()->decode_ns(batch, batch * mean_context);
  };
  int low = 0, high = max_alive + 1;  // faster at low (or 0), not at high
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (step(to, middle) < step(from, middle) ? low : high) = middle;
  }
  return low;
}

std::optional<Layout> best_merge(const std::vector<GenerationRun>& runs, const DivisorChain& chain,
                                 const StepModel& steps, const std::vector<int>& degrees,
                                 int slots_per_rank) {
  struct Node {
    std::vector<std::int64_t> ends;  // by scenario
    std::vector<int> degrees;        // of the groups inside
  };
  const Layout& layout = runs.front().layout();
  const auto mean = [](const std::vector<std::int64_t>& v) {
    return std::accumulate(v.begin(), v.end(), std::int64_t{0});
  };
  std::vector<Node> nodes(layout.groups().size());
  for (std::size_t g = 0; g < nodes.size(); ++g) {
    nodes[g].degrees = {layout.groups()[g].tp};
    for (const GenerationRun& run : runs) {
      ReplicaRun replica = run.replicas()[g];
      replica.finish();
      nodes[g].ends.push_back(replica.clock());
    }
  }
  // Level by level: nodes of one degree from those inside them.
  std::vector<LayoutGroup> places = layout.groups();
  for (const int tp : chain.degrees()) {
    if (!std::binary_search(degrees.begin(), degrees.end(), tp)) continue;
    std::vector<Node> up;
    std::vector<LayoutGroup> up_places;
    for (std::size_t i = 0; i < places.size();) {
      if (places[i].tp >= tp) {
        up.push_back(std::move(nodes[i]));
        up_places.push_back(places[i++]);
        continue;
      }
      const LayoutGroup place{places[i].first / tp * tp, tp};
      Node parts{std::vector<std::int64_t>(runs.size(), 0), {}};
      for (; i < places.size() && contains(place, places[i]); ++i) {
        for (std::size_t k = 0; k < runs.size(); ++k)
          parts.ends[k] = std::max(parts.ends[k], nodes[i].ends[k]);
        parts.degrees.insert(parts.degrees.end(), nodes[i].degrees.begin(), nodes[i].degrees.end());
      }
      Node whole{merged_ends(runs, place, steps, slots_per_rank), {tp}};
      up.push_back(mean(whole.ends) < mean(parts.ends) ? std::move(whole) : std::move(parts));
      up_places.push_back(place);
    }
    nodes = std::move(up);
    places = std::move(up_places);
  }
  std::vector<int> best;
  for (const Node& n : nodes) best.insert(best.end(), n.degrees.begin(), n.degrees.end());
  Layout merged(best, chain);
  if (merged == layout || merged.is_uniform()) return std::nullopt;
  return merged;
}

}  // namespace taper
