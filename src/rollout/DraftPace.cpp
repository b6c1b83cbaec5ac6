// SPDX-License-Identifier: Apache-2.0
#include "rollout/DraftPace.hpp"

#include <algorithm>

#include "base/ReplicaSnapshot.hpp"

namespace taper {
namespace {

// The mean of the newest ones of many values.
void approach(double& mean, double value) {
  constexpr double kShare = 1.0 / 16;
  mean = mean == 0 ? value : mean + kShare * (value - mean);
}

}  // namespace

void DraftPace::restart(int tp) {
  if (tp != tp_) buckets_ = {};
  tp_ = tp;
}

void DraftPace::begin(int tp) {
  restart(tp);
  for (Bucket& b : buckets_) {
    b.interval = kFirstInterval;
    if (!b.looks) b.until_trial = kTrial;
  }
}

DraftLimits DraftPace::limits(int sequences) const {
  const Bucket& b = buckets_[length_bucket(sequences)];
  if (b.looks == (b.trial > 0)) return DraftLimits::nothing();
  // Before costs are known, what is probable is tried.
  if (b.plain_ns == 0 || b.row_ns == 0) return {kRatioOne / 2, 0};
  const double rate = std::max(b.with.rate(), sequences / b.plain(sequences));
  const auto price = [&](double ns, int unit, int most) {
    return static_cast<int>(std::clamp(unit * ns * rate, 0.0, static_cast<double>(most)));
  };
  return {std::max(1, price(b.row_ns, kRatioOne, DraftLimits::kNothing - 1)),
          price(b.round_ns, DraftLimits::kRoundUnit, DraftLimits::kNoRound)};
}

void DraftPace::learn_costs(Bucket& b, const DecodeStep& step) {
  if (step.model.rounds > 0)
    approach(b.round_ns, static_cast<double>(step.model.ns) / step.model.rounds);
  const auto ns = static_cast<double>(step.ns - step.model.ns);
  if (step.drafted == 0) {
    approach(b.plain_ns, ns);
    approach(b.sequences, step.sequences);
  } else if (b.plain_ns > 0) {
    // A row takes some time, whatever the noise of two measurements says.
    const double plain = b.plain(step.sequences);
    approach(b.row_ns, std::max((ns - plain) / step.drafted, plain / 128));
  }
}

void DraftPace::measure(const DecodeStep& step) {
  Bucket& b = bucket(step.sequences);
  const bool looked = step.limits.threshold < DraftLimits::kNothing;
  const bool tries = b.trial > 0 && looked != b.looks;
  // In the first step of a trial, texts are indexed that have come since the last one.
  if (!tries || b.trial < kTrial) {
    learn_costs(b, step);
    Sums& sums = looked ? b.with : b.without;
    sums.fade(31.0 / 32);
    sums.tokens += step.sequences + step.accepted;
    sums.ns += static_cast<double>(step.ns);
  }
  if (tries) {
    if (--b.trial == 0) conclude(b);
    return;
  }
  if (b.trial > 0 || --b.until_trial > 0) return;
  b.until_trial = b.interval;
  // Drafts that clearly pay need no trial.
  if (b.looks && b.with.rate() * b.plain_ns > 1.05 * b.sequences) return;
  b.trial = kTrial;
  (b.looks ? b.without : b.with).fade(0.125);  // the trial says more than what was long ago
}

void DraftPace::conclude(Bucket& b) {
  const bool looks = b.with.rate() >= b.without.rate();
  b.interval = looks == b.looks ? std::min(2 * b.interval, kLastInterval) : kFirstInterval;
  b.looks = looks;
  b.until_trial = b.interval;
}

}  // namespace taper
