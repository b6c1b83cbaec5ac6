// SPDX-License-Identifier: Apache-2.0
#include "planner/RegretBudget.hpp"

#include <algorithm>

#include "base/Bytes.hpp"
#include "base/ReplicaSnapshot.hpp"

namespace taper {
namespace {

// Generations that the comparison with static layouts remembers, in the mean. Without forgetting, a
// loss of the first generations, when little is known of lengths, would end all switching.
constexpr std::int64_t kMemory = 8;

// value * ppm / 10^6 without overflow for any time.
std::int64_t share(std::int64_t value, std::int64_t ppm) {
  return value / 1'000'000 * ppm + value % 1'000'000 * ppm / 1'000'000;
}

}  // namespace

bool RegretBudget::affords(std::int64_t cost_ns, std::int64_t generation_ns) const {
  return spent_ + cost_ns <=
         share(elapsed_ + generation_ns, budget_ppm_) + std::max<std::int64_t>(0, saved_);
}

// As of a full memory, so that a small loss of the first generations ends nothing.
std::int64_t RegretBudget::limit_ns() const {
  return share(replayed_ * (kMemory * kRatioOne) / std::max<std::int64_t>(kRatioOne, weight_),
               fallback_ppm_);
}

int RegretBudget::best_static() const {
  return static_cast<int>(std::min_element(static_.begin(), static_.end()) - static_.begin());
}

void RegretBudget::finish(std::int64_t elapsed_ns, std::int64_t replayed_ns, std::int64_t stayed_ns,
                          std::span<const std::int64_t> static_ns, bool counts) {
  elapsed_ += elapsed_ns;
  saved_ += stayed_ns - replayed_ns;
  spent_ = 0;
  if (!counts || static_ns.empty()) return;
  const auto add = [](std::int64_t& sum, std::int64_t ns) { sum += ns - sum / kMemory; };
  static_.resize(static_ns.size(), 0);
  for (std::size_t i = 0; i < static_ns.size(); ++i) add(static_[i], static_ns[i]);
  add(weight_, kRatioOne);
  add(stayed_, stayed_ns);
  add(replayed_, replayed_ns);
  const std::int64_t limit = limit_ns();
  exhausted_ = loss_ns() > (exhausted_ ? limit / 2 : limit);
  // A first layout that is good only with the switches that follow it is no loss.
  const std::int64_t worse = std::min(stayed_, replayed_) - static_[best_static()];
  prefers_static_ = worse > (prefers_static_ ? limit / 2 : limit);
}

std::string RegretBudget::save() const {
  std::string bytes;
  ByteWriter out(bytes);
  for (const std::int64_t sum : {elapsed_, saved_, spent_, weight_, replayed_, stayed_})
    out.value(sum);
  for (const bool flag : {exhausted_, prefers_static_}) out.value(std::int64_t{flag});
  for (const std::int64_t sum : static_) out.value(sum);
  return bytes;
}

void RegretBudget::load(std::string_view bytes) {
  ByteReader in(bytes);
  for (std::int64_t* const sum : {&elapsed_, &saved_, &spent_, &weight_, &replayed_, &stayed_})
    in.value(*sum);
  for (bool* const flag : {&exhausted_, &prefers_static_}) *flag = in.value<std::int64_t>() != 0;
  static_.clear();
  while (!in.done()) static_.push_back(in.value<std::int64_t>());
}

}  // namespace taper
