// SPDX-License-Identifier: Apache-2.0
#include "draft/EndOrder.hpp"

#include <algorithm>
#include <numeric>

namespace taper {

void Endings::count(std::int64_t length, FinishReason reason) {
  if (reason == FinishReason::kAbort) return;
  for (int b = 0; b <= length_bucket(length); ++b) {
    counts_[2 * b] += 1;
    counts_[2 * b + 1] += reason == FinishReason::kLength ? 1 : 0;
  }
}

void Endings::add(const Endings& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
}

void Endings::fade() {
  for (std::int64_t& count : counts_) count /= 2;
}

double Endings::reaches_limit(std::int64_t length) const {
  const int b = length_bucket(length);
  return static_cast<double>(1 + counts_[2 * b + 1]) / static_cast<double>(2 + counts_[2 * b]);
}

// From the last one to get to its limit on. Those that get there at about the same time are waited
// for in turns.
std::vector<double> chances_to_end_last(std::span<const Runner> runners) {
  const auto n = runners.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return runners[a].steps > runners[b].steps;
  });
  std::vector<double> chances(n, 0.0);
  double none = 1;  // the probability that none of those before gets to its limit
  for (std::size_t begin = 0, end = 0; begin < n; begin = end) {
    const double first = runners[order[begin]].steps;
    const double about = first - std::max(1.0, first / 64);
    double none_here = 1, sum = 0;
    for (; end < n && runners[order[end]].steps >= about; ++end) {
      none_here *= 1 - runners[order[end]].reaches_limit;
      sum += runners[order[end]].reaches_limit;
    }
    for (std::size_t i = begin; sum > 0 && i < end; ++i)
      chances[order[i]] = none * (1 - none_here) * runners[order[i]].reaches_limit / sum;
    none *= none_here;
  }
  for (double& chance : chances) chance += none / static_cast<double>(n);
  return chances;
}

std::vector<double> EndOrder::worths(std::span<const DraftAsk> asks, Queue queue,
                                     const Endings& before) {
  std::map<ResponseId, Seen> last;
  std::swap(last, seen_);
  std::vector<Runner> runners;
  std::vector<Seen*> seen;
  for (const auto& [sequence, most] : asks) {
    const auto known = last.find(sequence->id);
    Seen& s = seen_[sequence->id];
    if (known != last.end()) s = known->second;
    seen.push_back(&s);
    const int length = sequence->length() - sequence->prompt_length;
    // Pinned ends are not what a run would know.
    const double steps = static_cast<double>(sequence->max_new_tokens - length) *
                         static_cast<double>(s.steps) / static_cast<double>(s.tokens);
    runners.push_back({steps, before.reaches_limit(length)});
  }
  std::vector<double> worths(asks.size(), 1.0);
  if (queue == Queue::kEmpty) {
    worths = chances_to_end_last(runners);
    for (double& worth : worths) worth *= static_cast<double>(asks.size());
  }
  for (std::size_t i = 0; i < asks.size(); ++i) seen[i]->worth = worths[i];
  return worths;
}

double EndOrder::worth(const ResponseId& id) const {
  const auto at = seen_.find(id);
  return at != seen_.end() ? at->second.worth : 1.0;
}

void EndOrder::observe(const ResponseId& id, std::int64_t tokens) {
  constexpr double kLeastWorth = 0.125;  // with less there are hardly any drafts
  const auto at = seen_.find(id);
  if (at == seen_.end() || at->second.worth < kLeastWorth) return;
  at->second.tokens += tokens;
  at->second.steps += 1;
}

}  // namespace taper
