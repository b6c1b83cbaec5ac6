// SPDX-License-Identifier: Apache-2.0
#include "rollout/DraftPace.hpp"

#include <algorithm>

#include "base/ReplicaSnapshot.hpp"

namespace taper {
namespace {

// The mean of the newest ones of many values.
void approach(double& mean, double value, double share = 1.0 / 16) {
  mean = mean == 0 ? value : mean + share * (value - mean);
}

}  // namespace

void DraftPace::restart(int tp) {
  if (tp != tp_) {
    buckets_ = {};
    reading_ = reading_before_ = {};
  }
  tp_ = tp;
}

void DraftPace::begin(int tp) {
  restart(tp);
  if (reading_.ns > 0) {
    reading_before_.ns = reading_before_.ns / 2 + reading_.ns;
    reading_before_.rounds = reading_before_.rounds / 2 + reading_.rounds;
    reading_ = {};
  }
  for (Bucket& b : buckets_) {
    b.interval = kFirstInterval;
    if (!b.looks) b.until_trial = kTrial;
    if (b.until_rounds < b.half_until_rounds) try_rounds(b);
  }
}

DraftLimits DraftPace::limits(int sequences) const {
  const Bucket& b = buckets_[length_bucket(sequences)];
  // The cost of a row is known by comparison with a step without drafts, so that one comes first.
  if (b.plain_ns == 0 || b.looks == (b.trial > 0)) return DraftLimits::nothing();
  // Before that cost is known, what is probable is tried: more than a guess of which nothing is
  // known, or the first steps of large batches would be full of those.
  constexpr int kProbable = kRatioOne * 5 / 8;
  const double rate = std::max(b.with.rate(), sequences / b.plain(sequences));
  const auto price = [&](double ns, int unit, int most) {
    return static_cast<int>(std::clamp(unit * ns * rate, 0.0, static_cast<double>(most)));
  };
  double round_ns = 0;
  if (!b.tries_rounds) {
    round_ns = b.round_ns;
    // What has been read is there for the rest of the generation.
    if (reading_.ns == 0 && reading_before_.ns > 0)
      round_ns += reading_before_.ns / std::max(1.0, reading_before_.rounds);
  }
  const int row = price(b.row_ns, kRatioOne, DraftLimits::kNothing - 1);
  return {b.row_ns == 0 ? kProbable : std::max(1, row),
          price(round_ns, DraftLimits::kRoundUnit, DraftLimits::kNoRound)};
}

void DraftPace::learn_costs(Bucket& b, const DecodeStep& step) {
  if (step.model.rounds > 0)
    approach(b.round_ns, static_cast<double>(step.model.ns) / step.model.rounds, 0.25);
  const auto ns = static_cast<double>(step.ns - step.model.all_ns());
  if (step.drafted == 0) {
    approach(b.plain_ns, ns);
    approach(b.sequences, step.sequences);
    return;
  }
  const double more = step.drafted + step.sequences - b.sequences;
  if (b.plain_ns == 0 || more < 1) return;
  // A row takes some time, and not that of a step, whatever the noise of two measurements says.
  approach(b.row_ns, std::clamp((ns - b.plain_ns) / more, b.plain_ns / 128, b.plain_ns));
}

// A price that nothing confirms any more is forgotten now and then: rounds are made until there is
// a new one.
void DraftPace::schedule_rounds(Bucket& b, const DecodeStep& step) {
  const auto model_ns = static_cast<double>(step.model.all_ns());
  if (b.tries_rounds) {
    if (model_ns == 0) return;
    b.tries_rounds = b.round_ns == 0 && step.model.reading_ns == 0;
    wait_with_rounds(b, model_ns / kRoundTrialShare);
  } else if (model_ns > 0) {
    wait_with_rounds(b, std::max({b.until_rounds, static_cast<double>(kFirstInterval * step.ns),
                                  static_cast<double>(step.model.reading_ns) / kRoundTrialShare}));
  } else if ((b.until_rounds -= static_cast<double>(step.ns)) <= 0) {
    try_rounds(b);
  }
}

void DraftPace::try_rounds(Bucket& b) {
  b.tries_rounds = true;
  b.round_ns = 0;
}

void DraftPace::wait_with_rounds(Bucket& b, double ns) {
  b.until_rounds = ns;
  b.half_until_rounds = ns / 2;
}

void DraftPace::measure(const DecodeStep& step) {
  Bucket& b = bucket(step.sequences);
  reading_.ns += static_cast<double>(step.model.reading_ns);
  reading_.rounds += step.model.rounds;
  const bool looked = step.limits.threshold < DraftLimits::kNothing;
  const bool tries = b.trial > 0 && looked != b.looks;
  // In the first step of a trial, texts are indexed that have come since the last one.
  if (!tries || b.trial < kTrial) {
    learn_costs(b, step);
    Sums& sums = looked ? b.with : b.without;
    sums.fade(31.0 / 32);
    sums.tokens += step.sequences + step.accepted;
    // What is read once pays off over many steps.
    sums.ns += static_cast<double>(step.ns - step.model.reading_ns);
  }
  schedule_rounds(b, step);
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
