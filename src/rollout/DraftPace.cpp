// SPDX-License-Identifier: Apache-2.0
#include "rollout/DraftPace.hpp"

#include <algorithm>

#include "base/ReplicaSnapshot.hpp"

namespace taper {
namespace {

// The shortest pause, in steps, and the longest one after looks: one may be slow by chance.
constexpr int kLeastPause = 32, kLongestPause = 1024;

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

void DraftPace::begin(int tp, GenerationKind kind) {
  restart(tp);
  kind_ = kind.index();
  if (reading_.ns > 0) {
    reading_before_.ns = reading_before_.ns / 2 + reading_.ns;
    reading_before_.rounds = reading_before_.rounds / 2 + reading_.rounds;
    reading_ = {};
  }
  for (Bucket& b : buckets_) {
    if (Looks& l = b.looks[kind_]; !l.are_made && l.pause.is_half_over()) try_looks(l);
    if (b.rounds_pause.is_half_over()) try_rounds(b);
  }
}

DraftLimits DraftPace::limits(int sequences) const {
  const Bucket& b = buckets_[length_bucket(sequences)];
  const Looks& looks = b.looks[kind_];
  // The cost of a row is known by comparison with a step without drafts, so that one comes first,
  // and another one where there has been none for long: sequences grow.
  constexpr int kStepsPerPlain = 128;
  if (b.plain_ns == 0 || !looks.are_made || b.since_plain >= kStepsPerPlain)
    return DraftLimits::nothing();
  // Before that cost is known, what is probable is tried: more than a guess of which nothing is
  // known, or the first steps of large batches would be full of those.
  constexpr int kProbable = kRatioOne * 5 / 8;
  const double rate = std::max(looks.with.rate(), sequences / b.plain(sequences));
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
          price(round_ns / sequences, kRatioOne, DraftLimits::kNoRound)};
}

void DraftPace::learn_costs(Bucket& b, const DecodeStep& step) {
  if (step.model.rounds > 0)
    approach(b.round_ns, static_cast<double>(step.model.ns) / step.model.rounds, 0.25);
  const auto ns =
      static_cast<double>(step.ns - step.look_ns - step.reading_ns - step.model.all_ns());
  ++b.since_plain;
  if (step.drafted == 0) {
    b.since_plain = 0;
    approach(b.plain_ns, ns);
    approach(b.sequences, step.sequences);
    return;
  }
  const double more = step.drafted + step.sequences - b.sequences;
  if (b.plain_ns == 0 || more < 1) return;
  // A row takes some time, and not more than one of a step without guesses, whatever the noise of
  // two measurements says.
  const double most = b.plain_ns / b.sequences;
  approach(b.row_ns, std::clamp((ns - b.plain_ns) / more, most / 128, most));
}

// A price that nothing confirms any more is forgotten now and then: rounds are made until there is
// a new one.
void DraftPace::schedule_rounds(Bucket& b, const DecodeStep& step) {
  const auto model_ns = static_cast<double>(step.model.all_ns());
  if (b.tries_rounds) {
    if (model_ns == 0) return;
    b.tries_rounds = b.round_ns == 0 && step.model.reading_ns == 0;
    b.rounds_pause.begin(model_ns / kRoundTrials);
  } else if (model_ns > 0) {
    b.rounds_pause.begin(
        std::max({b.rounds_pause.left_ns, static_cast<double>(kLeastPause * step.ns),
                  static_cast<double>(step.model.reading_ns) / kRoundTrials}));
  } else {
    b.rounds_pause.left_ns -= static_cast<double>(step.ns);
    if (b.rounds_pause.is_over()) try_rounds(b);
  }
}

void DraftPace::try_rounds(Bucket& b) {
  b.tries_rounds = true;
  b.round_ns = 0;
}

void DraftPace::try_looks(Looks& looks) {
  looks.are_made = true;
  looks.account = {};
}

// What a step with looks gave and took.
void DraftPace::count(const Bucket& b, Looks& looks, const DecodeStep& step) {
  constexpr double kFade = 1 - 1.0 / 32, kAccountFade = 1 - 1.0 / 64;
  looks.with.tokens = kFade * looks.with.tokens + step.sequences + step.accepted;
  // What is read once pays off over many steps.
  looks.with.ns = kFade * looks.with.ns +
                  static_cast<double>(step.ns - step.reading_ns - step.model.reading_ns);
  looks.promise.add(step.expected, step.accepted);
  Account& a = looks.account;
  const bool is_first = a.asks == 0;
  a.asks = kAccountFade * a.asks + step.sequences;
  if (is_first) {
    a.reading_ns = static_cast<double>(step.look_ns + step.reading_ns);
    return;
  }
  // What a lone sequence gets in a few steps is chance. Of several, there is more to count, and
  // what a token is worth is an estimate itself.
  const double tokens = step.sequences == 1 ? step.expected * looks.promise.kept() : step.accepted;
  a.saved_ns = kAccountFade * a.saved_ns + tokens * b.plain(step.sequences) / step.sequences;
  a.spent_ns = kAccountFade * a.spent_ns + step.drafted * b.row_ns +
               static_cast<double>(step.look_ns + (b.tries_rounds ? 0 : step.model.ns));
}

// Looks are a trial until so many sequences were asked for that the account says something.
void DraftPace::schedule_looks(const Bucket& b, Looks& looks, const DecodeStep& step) {
  constexpr int kKnownAsks = 32;
  if (step.limits.threshold >= DraftLimits::kNothing) {
    looks.pause.left_ns -= static_cast<double>(step.ns);
    if (!looks.are_made && looks.pause.is_over()) try_looks(looks);
    return;
  }
  count(b, looks, step);
  Account& a = looks.account;
  if (!looks.are_made || a.asks < kKnownAsks) return;
  if (a.saved_ns >= a.spent_ns) {
    a.reading_ns = 0;  // it was no trial
    return;
  }
  looks.are_made = false;
  const double step_ns = b.plain(step.sequences);
  looks.pause.begin(std::clamp((a.spent_ns - a.saved_ns) / kLookTrials, kLeastPause * step_ns,
                               kLongestPause * step_ns) +
                    std::min(a.reading_ns / kLookTrials, 2 * kLongestPause * step_ns));
}

void DraftPace::measure(const DecodeStep& step) {
  Bucket& b = bucket(step.sequences);
  reading_.ns += static_cast<double>(step.model.reading_ns);
  reading_.rounds += step.model.rounds;
  learn_costs(b, step);
  schedule_looks(b, b.looks[kind_], step);
  schedule_rounds(b, step);
}

}  // namespace taper
