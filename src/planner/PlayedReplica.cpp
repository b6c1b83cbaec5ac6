// SPDX-License-Identifier: Apache-2.0
#include "planner/PlayedReplica.hpp"

#include <algorithm>

namespace taper {

PlayedReplica::Item PlayedReplica::item_of(const SimulatedSequence& s) const {
  return {counter_ + s.remaining, s.context - counter_, s.id, s.prompt, s.response + s.remaining};
}

void PlayedReplica::add(const SimulatedSequence& s) {
  if (s.context > 0 && running() < max_running_) {
    items_.push_back(item_of(s));
    offsets_ += items_.back().offset;
    return;
  }
  queue_.push_back(s);
  if (s.context > 0) {  // no slot: it waits and is read again
    queue_.back().context = 0;
    queue_.back().to_read = s.context;
  }
}

void PlayedReplica::start() {
  std::sort(items_.begin(), items_.end(),
            [](const Item& a, const Item& b) { return a.end > b.end; });
}

// The prompts of the sequences admitted are read in the steps that follow, which all others wait
// for.
void PlayedReplica::admit() {
  std::int64_t rows = 0, context = 0;  // a prompt's rows are read over half of it, in the mean
  for (; next_ < queue_.size() && running() < max_running_; ++next_) {
    SimulatedSequence& s = queue_[next_];
    rows += s.to_read;
    s.context = s.prompt + s.response;
    context += s.to_read * (s.context - s.to_read / 2);
    const Item item = item_of(s);
    offsets_ += item.offset;
    items_.insert(std::upper_bound(items_.begin(), items_.end(), item,
                                   [](const Item& a, const Item& b) { return a.end > b.end; }),
                  item);
  }
  clock_ += curve_->prefill_ns(rows, context / std::max<std::int64_t>(1, rows));
}

void PlayedReplica::advance(std::int64_t until, std::vector<std::int64_t>* ends) {
  while (clock_ < until) {
    if (next_ < queue_.size() && running() < max_running_) admit();
    if (items_.empty()) return;
    // To the next end of a sequence, or not beyond the time by more than a step.
    // Reading prompts may have passed it already: then one step.
    const std::int64_t to_end = items_.back().end - counter_;
    const std::int64_t left = std::max<std::int64_t>(0, until - clock_);
    const auto time_of = [&](std::int64_t stride) {
      return curve_->tokens_ns(running(), context(), stride);
    };
    std::int64_t stride = to_end, ns = time_of(stride);
    if (ns > left && stride > 1) {
      stride = std::min(to_end, left / time_of(1) + 1);
      if (stride > 1) stride = std::clamp<std::int64_t>(left * stride / time_of(stride), 1, stride);
      ns = time_of(stride);
    }
    clock_ += ns;
    counter_ += stride;
    while (!items_.empty() && items_.back().end <= counter_) {
      offsets_ -= items_.back().offset;
      items_.pop_back();
      ++ended_;
      if (ends) ends->push_back(clock_);
    }
  }
}

std::vector<SimulatedSequence> PlayedReplica::sequences() const {
  std::vector<SimulatedSequence> list;
  list.reserve(items_.size() + queue_.size() - next_);
  for (const Item& i : items_) {
    const auto remaining = static_cast<std::int32_t>(i.end - counter_);
    list.push_back({i.id, static_cast<std::int32_t>(i.offset + counter_), i.prompt,
                    i.final_length - remaining, remaining, 0});
  }
  list.insert(list.end(), queue_.begin() + static_cast<std::ptrdiff_t>(next_), queue_.end());
  return list;
}

}  // namespace taper
