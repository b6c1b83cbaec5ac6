// SPDX-License-Identifier: Apache-2.0
#include "rl/RewardVariance.hpp"

#include <algorithm>
#include <numeric>

#include "base/Error.hpp"
#include "rl/Moments.hpp"

namespace taper {
namespace {

// The range of scores: as it is set, or as it is.
std::pair<double, double> range_of(const std::vector<double>& scores,
                                   const RewardAdjustmentOptions& o) {
  const auto [least, most] = std::minmax_element(scores.begin(), scores.end());
  if (o.low == o.high) return {*least, *most};
  TAPER_VALIDATE(*least >= o.low, "a score is " << *least << ", below Algorithm/Reward Low ("
                                                << o.low << "); lower it");
  TAPER_VALIDATE(*most <= o.high, "a score is " << *most << ", above Algorithm/Reward High ("
                                                << o.high << "); raise it");
  return {o.low, o.high};
}

}  // namespace

std::vector<std::pair<std::string, RewardAdjustment>> named_reward_adjustments() {
  return {{"none", RewardAdjustment::kNone}, {"variance", RewardAdjustment::kVariance}};
}

std::vector<std::string> RewardAdjustmentOptions::problems() const {
  std::vector<std::string> list;
  if (is_on() && low > high)
    list.push_back(
        "Algorithm/Reward Low is above Algorithm/Reward High; exchange them, or leave both "
        "at 0 (then it is the range of the scores)");
  if (!is_on() && low != high)
    list.push_back(
        "Algorithm/Reward Low and Reward High are set, but Algorithm/Reward Adjustment is "
        "none (nothing uses them); set it to variance, or leave them out");
  return list;
}

std::vector<double> spread_rewards(std::span<const double> rewards, double low, double high) {
  std::vector<double> spread(rewards.begin(), rewards.end());
  if (!(high > low)) return spread;
  std::vector<std::size_t> order(rewards.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rewards[a] > rewards[b]; });
  double excess = 0.0;  // above `low`, in units of a winner
  for (const std::size_t i : order) excess += (rewards[i] - low) / (high - low);
  // Blocks of equal rewards, the largest first, share what is left in equal parts.
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    do ++end;
    while (end < order.size() && rewards[order[end]] == rewards[order[begin]]);
    const double share = std::clamp(excess / static_cast<double>(end - begin), 0.0, 1.0);
    for (std::size_t i = begin; i < end; ++i) spread[order[i]] = low + (high - low) * share;
    excess -= share * static_cast<double>(end - begin);
  }
  return spread;
}

std::vector<double> adjusted_scores(const SampleSet& samples,
                                    const RewardAdjustmentOptions& options,
                                    RewardAdjustmentReport& report) {
  std::vector<double> scores;
  for (const SampleSummary& s : samples.all()) scores.push_back(s.score);
  if (!options.is_on() || scores.empty()) return scores;
  const auto [low, high] = range_of(scores, options);
  std::vector<double> adjusted = scores;
  int groups = 0;
  for_each_group(samples.all(), [&, low = low, high = high](std::size_t begin, std::size_t end) {
    if (end - begin < 2) return;
    const std::span<const double> before(scores.data() + begin, end - begin);
    const std::vector<double> after = spread_rewards(before, low, high);
    std::copy(after.begin(), after.end(), adjusted.begin() + static_cast<std::ptrdiff_t>(begin));
    ++groups;
    const Moments moments = moments_of(before);
    report.variance_before += moments.variance;
    report.variance_after += moments_of(after).variance;
    if (high > low) report.winners += (moments.mean - low) / (high - low);
  });
  for (double* mean : {&report.variance_before, &report.variance_after, &report.winners})
    *mean /= std::max(1, groups);
  return adjusted;
}

}  // namespace taper
