// SPDX-License-Identifier: Apache-2.0
#include "planner/Cluster.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace taper {
namespace {

// What ends late, sorts high: the longest response, then the number of sequences.
std::pair<int, int> lasting(const ReplicaSnapshot* begin, const ReplicaSnapshot* end) {
  int longest = 0, alive = 0;
  for (const ReplicaSnapshot* r = begin; r != end; ++r) {
    for (int b = 0; b < ReplicaSnapshot::kBuckets; ++b)
      if (r->lengths[b] > 0) longest = std::max(longest, b + 1);
    alive += r->alive();
  }
  return {longest, alive};
}

}  // namespace

Cluster::Cluster(const DivisorChain& chain, const StepModel& steps, const std::vector<int>& degrees)
    : chain_(chain), steps_(&steps) {
  for (const int tp : degrees) uniform_.push_back(&shape(Layout::uniform(tp, chain_)));
}

const LayoutShape& Cluster::shape(const Layout& layout) {
  for (const LayoutShape& s : shapes_)
    if (s.layout == layout) return s;
  return shapes_.emplace_back(resolve(layout, *steps_));
}

DivisorChain sample_chain(const DivisorChain& chain, int block, int blocks) {
  std::vector<int> degrees;
  for (const int degree : chain.degrees())
    if (degree <= block) degrees.push_back(degree);
  degrees.push_back(block * blocks);
  return DivisorChain(degrees);
}

Snapshot sample_of(const Snapshot& snapshot, const DivisorChain& sample, int block) {
  const int tp = snapshot.layout.groups().front().tp, replicas = block / tp;
  std::vector<int> order(snapshot.layout.ranks() / block);
  std::iota(order.begin(), order.end(), 0);
  const auto first = [&](int b) { return snapshot.replicas.data() + b * replicas; };
  std::vector<std::pair<int, int>> score;
  for (const int b : order) score.push_back(lasting(first(b), first(b) + replicas));
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return score[a] > score[b]; });
  order.resize(sample.ranks() / block);
  std::sort(order.begin(), order.end());
  Snapshot s{
      Layout::uniform(tp, sample), {}, snapshot.elapsed_ns, snapshot.consultation, snapshot.epoch};
  for (const int b : order) s.replicas.insert(s.replicas.end(), first(b), first(b) + replicas);
  return s;
}

}  // namespace taper
