// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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
  double expected = 0;  // tokens that they were expected to give, in the same way
  std::int64_t ns = 0;
  std::int64_t look_ns = 0;     // of which for looking for guesses in texts,
  ModelRounds model = {};       // for rounds of a draft model,
  std::int64_t reading_ns = 0;  // and for reading texts of earlier generations
};

// Generations in which drafts reach about as far.
struct GenerationKind {
  bool is_greedy = false;
  bool knows_prompts = false;  // has earlier responses to most of them

  static constexpr int kKinds = 4;
  int index() const { return 2 * is_greedy + knows_prompts; }
};

// Finds on a leader, by measured times, which guesses are worth their row, and which rounds of a
// draft model their time. It has no clock.
//
// With T the time of a step, G its tokens (those of drafts by their value) and c the time of one
// more row, a guess for a sequence of worth 1 that counts with probability p is worth its row if p
// / c > G / T: its nanoseconds give more tokens than those of an average row. The threshold of p is
// therefore c G / T. A round of a draft model that takes D is worth its time if it is expected to
// add D G / T tokens. Where hardly any guess reaches the threshold, even looking for guesses costs
// more than it brings: looks are made while the time that drafts save is more than that of looks,
// rounds and rows, over the last ones. What does not pay, looks or rounds, is tried again now and
// then, with a few parts in 1,024 of the time: prices change, and so does how often guesses are
// right. What looks bring, and their trials, are kept apart by the kind of generation; prices, and
// trials of rounds, are the same for all. What a model reads at first, of sequences that are new to
// it, belongs to the price of the first round of a generation: divided by the rounds that those
// before it had of late.
class DraftPace {
 public:
  // Another generation, in groups of so many ranks: there may be more to guess from.
  void begin(int tp, GenerationKind kind = {});
  // Groups of so many ranks work now. The times of others do not hold for them.
  void restart(int tp);

  // For a step of so many sequences.
  DraftLimits limits(int sequences) const;
  void measure(const DecodeStep& step);

 private:
  // What trials of rounds, and of looks, may take of the time; if they begin with generations, up
  // to twice as much.
  static constexpr double kRoundTrials = 1.0 / 512, kLookTrials = 1.0 / 1024;

  // The time that passes before something that did not pay is tried again.
  struct Pause {
    double left_ns = 0, half_ns = 0;

    void begin(double ns) { left_ns = ns, half_ns = ns / 2; }
    bool is_over() const { return left_ns <= 0; }
    // Then a trial may begin with a generation: there is more to guess from.
    bool is_half_over() const { return left_ns < half_ns; }
  };
  // Tokens and time of steps, the newest ones most.
  struct Sums {
    double tokens = 0, ns = 0;
    double rate() const { return ns > 0 ? tokens / ns : 0; }
  };
  // Tokens that drafts were expected to give, and those that they gave.
  struct Promise {
    double expected = 0, accepted = 0;

    void add(double more_expected, double more_accepted) {
      constexpr double kMost = 64;  // expected tokens that it remembers
      expected += more_expected;
      accepted += more_accepted;
      const double fade = kMost / std::max(kMost, expected);
      expected *= fade;
      accepted *= fade;
    }
    double kept() const {
      constexpr double kBefore = 4;  // taken as kept before any have been counted
      return (accepted + kBefore) / (expected + kBefore);
    }
  };
  // What looks have brought and taken, the newest ones most.
  struct Account {
    double asks = 0;  // sequences that guesses were looked for
    double saved_ns = 0, spent_ns = 0;
    double reading_ns = 0;  // in a trial, of texts that have come since the looks before it
  };
  // Looks for guesses in generations of a kind.
  struct Looks {
    bool are_made = true;
    Pause pause;
    Sums with;        // of steps with looks
    Promise promise;  // judges looks for a lone sequence
    Account account;
  };
  // Steps of a similar number of sequences.
  struct Bucket {
    double sequences = 0, plain_ns = 0;  // means of steps without guesses; 0: not known
    int since_plain = 0;                 // steps with guesses since the last one of those
    double row_ns = 0;                   // of one more row; 0: not known
    double round_ns = 0;                 // of a round of a draft model; 0: not known
    bool tries_rounds = false;           // to get to know it
    Pause rounds_pause;
    std::array<Looks, GenerationKind::kKinds> looks;

    // Of a step without guesses; a sequence more takes as long as a row more.
    double plain(int n) const {
      return std::max(plain_ns + row_ns * (n - sequences), plain_ns / 2);
    }
  };

  // What a model has read at first, and the rounds that were made.
  struct Reading {
    double ns = 0, rounds = 0;
  };

  Bucket& bucket(int sequences) { return buckets_[length_bucket(sequences)]; }
  static void learn_costs(Bucket& bucket, const DecodeStep& step);
  static void try_rounds(Bucket& bucket);
  static void schedule_rounds(Bucket& bucket, const DecodeStep& step);
  static void try_looks(Looks& looks);
  static void count(const Bucket& bucket, Looks& looks, const DecodeStep& step);
  static void schedule_looks(const Bucket& bucket, Looks& looks, const DecodeStep& step);

  int tp_ = 0;
  int kind_ = 0;                      // of this generation
  Reading reading_, reading_before_;  // of this generation, and of those before
  std::array<Bucket, kLengthBuckets> buckets_;
};

}  // namespace taper
