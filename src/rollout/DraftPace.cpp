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

void DraftPace::begin() {
  for (Bucket& b : buckets_) {
    b.interval = kFirstInterval;
    if (!b.looks) b.until_trial = kTrial;
  }
}

int DraftPace::threshold(int sequences) const {
  const Bucket& b = buckets_[length_bucket(sequences)];
  if (b.looks == (b.trial > 0)) return kOff;
  // Before costs are known, what is probable is tried.
  if (b.share_ns == 0 || b.row_ns == 0) return kRatioOne / 2;
  const double rate = std::max(b.with.rate(), 1 / b.share_ns);
  return static_cast<int>(std::clamp(kRatioOne * b.row_ns * rate, 1.0, kOff - 1.0));
}

void DraftPace::learn_costs(Bucket& b, const DecodeStep& step) {
  const double ns = static_cast<double>(step.ns);
  if (step.drafted == 0) {
    approach(b.share_ns, ns / step.sequences);
  } else if (b.share_ns > 0) {
    const double plain = b.share_ns * step.sequences;
    approach(b.row_ns, std::max((ns - plain) / step.drafted, plain / 128));
  }
}

void DraftPace::measure(const DecodeStep& step) {
  Bucket& b = bucket(step.sequences);
  const bool looked = step.threshold < kOff;
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
  if (b.looks && b.with.rate() * b.share_ns > 1.05) return;
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
