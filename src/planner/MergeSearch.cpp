// SPDX-License-Identifier: Apache-2.0
#include "planner/MergeSearch.hpp"

#include <algorithm>
#include <numeric>

namespace taper {
namespace {

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

}  // namespace

MergeSearch::MergeSearch(const Layout& from, const DivisorChain& chain, const StepModel& steps,
                         const std::vector<int>& degrees, int slots_per_rank)
    : from_(from), chain_(chain), steps_(&steps), slots_per_rank_(slots_per_rank) {
  for (const LayoutGroup& group : from.groups()) places_.push_back({group, {}});
  for (const int tp : degrees)
    for (int first = 0; first < from.ranks(); first += tp)
      if (from.groups()[from.replica_of(first)].tp < tp) places_.push_back({{first, tp}, {}});
}

// When the sequences of the layout's groups within a place end in one group of it.
std::int64_t MergeSearch::end_of(const PlayedGeneration& played, const LayoutGroup& group) const {
  const auto& groups = from_.groups();
  std::size_t g = from_.replica_of(group.first);
  if (groups[g] == group) {
    PlayedReplica alone = played.replicas()[g];
    alone.finish();
    return alone.clock();
  }
  PlayedReplica merged(steps_->curve(group), slots_per_rank_ * group.tp, 0);
  std::int64_t last = 0;
  for (; g < groups.size() && group.contains(groups[g]); ++g) {
    last = std::max(last, played.replicas()[g].clock());
    for (const SimulatedSequence& s : played.replicas()[g].sequences()) merged.add(s);
  }
  merged.start();
  merged.delay(last);
  merged.finish();
  return merged.clock();
}

void MergeSearch::add(const PlayedGeneration& played) {
  for (Place& place : places_) place.ends.push_back(end_of(played, place.group));
}

std::optional<Layout> MergeSearch::best() const {
  struct Node {
    Place place;
    std::vector<int> degrees;  // of the groups inside
  };
  // Nodes cover all ranks; each further place takes the place of those inside it.
  std::vector<Node> nodes;
  for (const Place& place : places_) {
    const auto inside = [&](const Node& n) { return place.group.contains(n.place.group); };
    const auto first = std::find_if(nodes.begin(), nodes.end(), inside);
    const auto last = std::find_if_not(first, nodes.end(), inside);
    if (first == last) {
      nodes.push_back({place, {place.group.tp}});
      continue;
    }
    Node parts{{place.group, std::vector<std::int64_t>(place.ends.size(), 0)}, {}};
    for (auto n = first; n != last; ++n) {
      for (std::size_t k = 0; k < place.ends.size(); ++k)
        parts.place.ends[k] = std::max(parts.place.ends[k], n->place.ends[k]);
      parts.degrees.insert(parts.degrees.end(), n->degrees.begin(), n->degrees.end());
    }
    if (sum(place.ends) < sum(parts.place.ends)) parts = {place, {place.group.tp}};
    *first = std::move(parts);
    nodes.erase(first + 1, last);
  }
  std::vector<int> degrees;
  for (const Node& n : nodes) degrees.insert(degrees.end(), n.degrees.begin(), n.degrees.end());
  Layout merged(degrees, chain_);
  if (merged == from_ || merged.is_uniform()) return std::nullopt;
  return merged;
}

}  // namespace taper
