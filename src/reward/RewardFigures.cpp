// SPDX-License-Identifier: Apache-2.0
#include "reward/RewardFigures.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace taper {

RewardFigures::RewardFigures(std::vector<std::string> names) : names_(std::move(names)) {
  begin();
}

void RewardFigures::begin() {
  tallies_.assign(names_.size(), {});
  attempts_.clear();
}

void RewardFigures::Tally::add(float value) {
  if (std::isnan(value)) {
    ++missing;
    return;
  }
  highest = there == 0 ? value : std::max<double>(highest, value);
  lowest = there == 0 ? value : std::min<double>(lowest, value);
  sum += value;
  ++there;
}

void RewardFigures::add(const std::vector<SampleSummary>& samples) {
  for (const SampleSummary& s : samples)
    for (std::size_t i = 0; i < names_.size(); ++i) tallies_[i].add(s.rewards[i]);
}

void RewardFigures::add(const std::string& command, const RewardAttempts& more) {
  RewardAttempts& all = attempts_[command];
  all.errors += more.errors;
  all.timeouts += more.timeouts;
  all.restarts += more.restarts;
  all.seconds += more.seconds;
  all.longest = std::max(all.longest, more.longest);
  if (!more.adapted) return;
  if (!all.adapted) all.adapted.emplace();
  all.adapted->cut_short += more.adapted->cut_short;
  all.adapted->anchor_hits += more.adapted->anchor_hits;
}

MetricValues RewardFigures::metrics(const std::string& prefix) const {
  MetricValues values;
  if (names_.size() == 1 && attempts_.empty()) return values;
  const auto put = [&](const std::string& name, const char* figure, double value) {
    values.emplace_back(prefix + "/" + name + "/" + figure, value);
  };
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const Tally& tally = tallies_[i];
    const double there = static_cast<double>(tally.there);
    if (tally.there > 0) {
      put(names_[i], "mean", tally.sum / there);
      put(names_[i], "max", tally.highest);
      put(names_[i], "min", tally.lowest);
    }
    const auto found = attempts_.find(names_[i]);
    if (found == attempts_.end()) continue;
    const RewardAttempts& attempts = found->second;
    put(names_[i], "failed", static_cast<double>(tally.missing));
    put(names_[i], "errors", static_cast<double>(attempts.errors));
    put(names_[i], "timeouts", static_cast<double>(attempts.timeouts));
    put(names_[i], "restarts", static_cast<double>(attempts.restarts));
    if (attempts.adapted) {
      put(names_[i], "cut_short", static_cast<double>(attempts.adapted->cut_short));
      put(names_[i], "anchor_hits", static_cast<double>(attempts.adapted->anchor_hits));
    }
    if (tally.there == 0) continue;
    put(names_[i], "latency_s/mean", attempts.seconds / there);
    put(names_[i], "latency_s/max", attempts.longest);
  }
  return values;
}

}  // namespace taper
