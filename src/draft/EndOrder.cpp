// SPDX-License-Identifier: Apache-2.0
#include "draft/EndOrder.hpp"

#include <algorithm>

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

// Those that get to their limits within a step, or a 64th of what is left, may come in any order,
// with delays that are geometric: this one is the last of them, and alone, with the probability
// late / (late + others).
double chance_to_end_last(std::span<const Runner> runners, std::size_t which, int tokens_ahead) {
  const double end = runners[which].steps(tokens_ahead);
  double none_later = 1, none = 1, near = 0;
  for (std::size_t i = 0; i < runners.size(); ++i) {
    const Runner& r = runners[i];
    none *= 1 - r.reaches_limit;
    if (i == which) continue;
    const double width = std::max(1.0, std::max(end, r.steps()) / 64), later = r.steps() - end;
    if (later > width)
      none_later *= 1 - r.reaches_limit;
    else if (later >= -width)
      near += r.reaches_limit;
  }
  const double width = std::max(1.0, end / 64), late = width / (width + 1);
  return runners[which].reaches_limit * none_later * late / (late + near) +
         none / static_cast<double>(runners.size());
}

void EndOrder::begin_step(std::span<const DraftAsk> asks, Queue queue, const Endings& before) {
  std::map<ResponseId, Seen> last;
  std::swap(last, seen_);
  runners_.clear();
  for (const auto& [sequence, most] : asks) {
    const auto known = last.find(sequence->id);
    Seen& s = seen_[sequence->id];
    if (known != last.end()) s = known->second;
    s.place = runners_.size();
    const int length = sequence->length() - sequence->prompt_length;
    // Pinned ends are not what a run would know.
    runners_.push_back({static_cast<double>(sequence->max_new_tokens - length),
                        static_cast<double>(s.steps) / static_cast<double>(s.tokens),
                        before.reaches_limit(length)});
  }
  if (queue == Queue::kWaiting) runners_.clear();
}

double EndOrder::worth(const ResponseId& id, int tokens_ahead) const {
  const auto at = seen_.find(id);
  if (at == seen_.end() || runners_.empty()) return 1.0;
  return chance_to_end_last(runners_, at->second.place, tokens_ahead) *
         static_cast<double>(runners_.size());
}

void EndOrder::observe(const ResponseId& id, int tokens) {
  constexpr double kLeastWorth = 0.125;  // with less there are hardly any drafts
  if (worth(id) < kLeastWorth) return;
  const auto at = seen_.find(id);
  if (at == seen_.end()) return;
  at->second.tokens += tokens;
  at->second.steps += 1;
}

}  // namespace taper
