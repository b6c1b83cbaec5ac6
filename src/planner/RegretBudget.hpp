// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace taper {

// Keeps switching from costing more than a small share of the time, and gives up on it, or on
// choosing the first layout, while the past says that this has lost. The two are judged apart: a
// bad first layout is no reason to stay in it.
class RegretBudget {
 public:
  RegretBudget(std::int64_t budget_ppm, std::int64_t fallback_ppm)
      : budget_ppm_(budget_ppm), fallback_ppm_(fallback_ppm) {}

  // Whether a switch of this cost may be paid in a generation that is expected to take so long:
  // what switches cost, were none of the present generation to save anything, stays within the
  // share of all time and what past ones have saved.
  bool affords(std::int64_t cost_ns, std::int64_t generation_ns) const;
  void spend(std::int64_t cost_ns) { spent_ += cost_ns; }

  // Ends a generation: its time as replayed with the switches made, in its first layout all the
  // time, and under each static layout. `counts`: not if nothing was known of lengths yet.
  void finish(std::int64_t elapsed_ns, std::int64_t replayed_ns, std::int64_t stayed_ns,
              std::span<const std::int64_t> static_ns, bool counts);

  // Index of the static layout that the past favors.
  int best_static() const;
  // True while switches have lost too much against staying: from the limit on, until half of it.
  bool exhausted() const { return exhausted_; }
  // Likewise for the first layouts, switches included, against the best static one.
  bool prefers_static() const { return prefers_static_; }
  // What switches have lost (gained, if negative).
  std::int64_t loss_ns() const { return replayed_ - stayed_; }

  // 8-byte integers (ByteWriter). load() throws Error if they are damaged.
  std::string save() const;
  void load(std::string_view bytes);

 private:
  std::int64_t limit_ns() const;

  std::int64_t budget_ppm_, fallback_ppm_;
  std::int64_t elapsed_ = 0, saved_ = 0;  // of all past generations; costs are off the savings
  std::int64_t spent_ = 0;                // in the present one
  std::int64_t weight_ = 0;           // of the generations summed in what follows, in 1/kRatioOne
  std::int64_t stayed_ = 0;           // summed as the next
  std::int64_t replayed_ = 0;         // summed over generations, older ones fading
  std::vector<std::int64_t> static_;  // likewise, by layout
  bool exhausted_ = false, prefers_static_ = false;
};

}  // namespace taper
