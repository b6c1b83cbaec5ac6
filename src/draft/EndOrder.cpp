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

EndChances::EndChances(std::span<const Runner> runners) : places_(runners.size()) {
  std::vector<std::size_t> order(runners.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return runners[a].steps() > runners[b].steps();
  });
  none_.push_back(1);
  some_.push_back(0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Runner& r = runners_.emplace_back(runners[order[i]]);
    places_[order[i]] = i;
    none_.push_back(none_.back() * (1 - r.reaches_limit));
    some_.push_back(some_.back() + r.reaches_limit);
  }
}

double EndChances::none_of_first(std::size_t count, std::size_t but) const {
  if (but >= count) return none_[count];
  double none = none_[but];
  for (std::size_t i = but + 1; i < count; ++i) none *= 1 - runners_[i].reaches_limit;
  return none;
}

// Those that get to their limits within a step, or a 64th of what is left, may come in any order,
// with delays that are geometric: behind one other, this one is a step or more later with the
// probability `late`, behind more of them about late / (late + others).
double EndChances::is_last(std::size_t which, int tokens_ahead) const {
  const std::size_t place = places_[which];
  const double end = runners_[place].steps(tokens_ahead);
  const auto width = [](double steps) { return std::max(1.0, steps / 64); };
  const auto first = std::partition_point(runners_.begin(), runners_.end(), [&](const Runner& r) {
    return r.steps() - end > width(r.steps());
  });
  const auto behind = std::partition_point(
      first, runners_.end(), [&](const Runner& r) { return end - r.steps() <= width(end); });
  const auto later = static_cast<std::size_t>(first - runners_.begin()),
             until = static_cast<std::size_t>(behind - runners_.begin());
  double others = some_[until] - some_[later];
  if (place >= later && place < until) others -= runners_[place].reaches_limit;
  const double late = width(end) / (width(end) + 1);
  return runners_[place].reaches_limit * none_of_first(later, place) * late /
             (late + std::max(0.0, others)) +
         none_.back() / static_cast<double>(size());
}

void EndOrder::begin_step(std::span<const DraftAsk> asks, Queue queue, const Endings& before) {
  std::map<ResponseId, Seen> last;
  std::swap(last, seen_);
  std::vector<Runner> runners;
  for (const auto& [sequence, most] : asks) {
    const auto known = last.find(sequence->id);
    Seen& s = seen_[sequence->id];
    if (known != last.end()) s = known->second;
    s.place = runners.size();
    const int length = sequence->length() - sequence->prompt_length;
    // Pinned ends are not what a run would know.
    runners.push_back({static_cast<double>(sequence->max_new_tokens - length),
                       static_cast<double>(s.steps) / static_cast<double>(s.tokens),
                       before.reaches_limit(length)});
  }
  chances_ = queue == Queue::kWaiting ? EndChances() : EndChances(runners);
}

double EndOrder::worth(const ResponseId& id, int tokens_ahead) const {
  const auto at = seen_.find(id);
  if (at == seen_.end() || chances_.size() == 0) return 1.0;
  return chances_.is_last(at->second.place, tokens_ahead) * static_cast<double>(chances_.size());
}

void EndOrder::observe(const ResponseId& id, int tokens) {
  constexpr double kLeastWorth = 0.125;  // with less there are hardly any drafts
  const auto at = seen_.find(id);
  if (at == seen_.end() || worth(id) < kLeastWorth) return;
  at->second.tokens += tokens;
  at->second.steps += 1;
}

}  // namespace taper
