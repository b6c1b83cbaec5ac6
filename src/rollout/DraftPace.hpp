// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "base/Response.hpp"
#include "draft/GuessDrafter.hpp"

namespace taper {

// What a step that did nothing but decode took and gave.
struct DecodeStep {
  DraftLimits limits;  // that were in force
  int sequences = 0;
  int drafted = 0;      // rows of guesses among its rows
  double accepted = 0;  // tokens that they gave, each by its value (GuessDrafter)
  std::int64_t ns = 0;
  ModelRounds model = {};  // within that time
};

// Finds on a leader, by measured times, which guesses are worth their row, and which rounds of a
// draft model their time. It has no clock.
//
// With T the time of a step, G its tokens (those of drafts by their value) and c the time of one
// more row, a guess for a sequence of worth 1 that counts with probability p is worth its row if p
// / c > G / T: its nanoseconds give more tokens than those of an average row. The threshold of p is
// therefore c G / T. A round of a draft model that takes D is worth its time if it is expected to
// add D G / T tokens. Where hardly any guess reaches the threshold, even looking for guesses may
// cost more than it brings: then some steps are made without, and others are if those were faster,
// with trials that become the rarer the longer that stays so. Rounds that seem too dear are tried
// again, too: prices change, and so does how often the model is right. Trials of rounds take at
// most one part in 256 of the time. What a model reads at first, of sequences that are new to it,
// belongs to the price of the first round of a generation: divided by the rounds that such
// generations had of late.
class DraftPace {
 public:
  // Another generation, in groups of so many ranks: there may be more to guess from.
  void begin(int tp);
  // Groups of so many ranks work now. The times of others do not hold for them.
  void restart(int tp);

  // For a step of so many sequences.
  DraftLimits limits(int sequences) const;
  void measure(const DecodeStep& step);

 private:
  static constexpr int kTrial = 4;  // steps, of which the first one is not counted
  static constexpr int kFirstInterval = 32, kLastInterval = 1024;
  static constexpr double kRoundTrialShare = 1.0 / 256;

  // Tokens and time of steps, the newest ones most.
  struct Sums {
    double tokens = 0, ns = 0;
    double rate() const { return ns > 0 ? tokens / ns : 0; }
    void fade(double factor) { tokens *= factor, ns *= factor; }
  };
  // Steps of a similar number of sequences.
  struct Bucket {
    double sequences = 0, plain_ns = 0;  // means of steps without guesses; 0: not known
    double row_ns = 0;                   // of one more row; 0: not known
    double round_ns = 0;                 // of a round of a draft model; 0: not known
    // Whether rounds are tried to get to know it; time until the next try, and half of that: then
    // it may begin with a generation, when there is little to read.
    bool tries_rounds = false;
    double until_rounds = 0, half_until_rounds = 0;
    Sums with, without;
    bool looks = true;  // for guesses, but for trials
    int trial = 0;      // steps that are left of one
    int until_trial = kFirstInterval / 2, interval = kFirstInterval;

    // Of a step without guesses; a sequence more takes as long as a row more.
    double plain(int n) const { return plain_ns + row_ns * (n - sequences); }
  };

  // What a model has read at first, and the rounds that were made.
  struct Reading {
    double ns = 0, rounds = 0;
  };

  Bucket& bucket(int sequences) { return buckets_[length_bucket(sequences)]; }
  static void learn_costs(Bucket& bucket, const DecodeStep& step);
  static void try_rounds(Bucket& bucket);
  static void wait_with_rounds(Bucket& bucket, double ns);
  static void schedule_rounds(Bucket& bucket, const DecodeStep& step);
  static void conclude(Bucket& bucket);

  int tp_ = 0;
  Reading reading_, reading_before_;  // of this generation, and of those before
  std::array<Bucket, kLengthBuckets> buckets_;
};

}  // namespace taper
