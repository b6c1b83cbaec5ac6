// SPDX-License-Identifier: Apache-2.0
//
// Step times between and beyond the samples of a profile. Integers only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ReplicaSnapshot.hpp"
#include "planner/DraftTable.hpp"
#include "planner/LatencyProfile.hpp"
#include "shard/Layout.hpp"

namespace taper {

// Step time of one TP degree and pair class as a function of (new tokens, sequences, context):
// piecewise linear in the mean context on lines of equal batch, linear between the lines; what
// prompt rows add likewise, on lines of equal rows. Beyond the samples it goes on with the last
// slope, which is never negative: products cost time per row, attention per position.
class StepCurve {
 public:
  // The samples of one degree and class; at least one decode step among them. `verify`: those of
  // steps with guesses; without any, a guess is taken to cost as much as a sequence.
  explicit StepCurve(std::span<const StepSample> samples, std::span<const StepSample> verify = {});

  // A step of `sequences` tokens, one for each sequence, over `context` summed positions.
  std::int64_t decode_ns(int sequences, std::int64_t context) const;
  // What `rows` prompt positions in the same step add if their sequence has `context` positions.
  std::int64_t prefill_ns(std::int64_t rows, std::int64_t context) const;
  // What `drafted` guesses in all add to a step of `sequences` tokens.
  std::int64_t verify_ns(int sequences, int drafted, std::int64_t context) const;
  // Time for a token of each of `sequences` sequences, where a step may give several: by drafts
  // that reach as far as the table says, cut where that is fastest. That of a decode step without
  // a table.
  std::int64_t token_ns(int sequences, std::int64_t context) const {
    return decode_ns(sequences, context) * token_share(sequences) >> kRatioBits;
  }
  // The same for `tokens` tokens of each, one after the other, from `context` on.
  std::int64_t tokens_ns(int sequences, std::int64_t context, std::int64_t tokens) const;
  std::int64_t step_ns(int new_tokens, int sequences, std::int64_t context) const {
    return decode_ns(sequences, context) +
           prefill_ns(new_tokens - sequences, context / std::max(1, sequences));
  }

  // Multiplies the times of steps by factors / kRatioOne: those of batches by their
  // length_bucket(), what rows of prompts add by another one.
  using Factors = std::array<std::int64_t, kLengthBuckets>;
  void set_factors(const Factors& of_batches, std::int64_t of_prompts) {
    factors_ = of_batches;
    prompt_factor_ = of_prompts;
  }
  void set_drafts(const DraftTable& drafts);
  // What replicas would report of steps of so many sequences.
  DraftShares drafts(int sequences) const { return drafts_.shares(sequences); }

 private:
  struct Knot {
    std::int64_t context = 0;  // mean per sequence, in 1/16 positions
    std::int64_t ns = 0;
  };
  struct Line {
    std::int64_t rows = 0;    // one for each sequence, or of a prompt
    std::vector<Knot> knots;  // by ascending context
    std::int64_t at(std::int64_t context) const;
  };
  static constexpr int kTable = 512;  // batches looked up directly

  // Of steps of so many sequences, what guesses add: by their number, over the context.
  struct Verified {
    int sequences = 0;
    std::vector<Line> lines;
  };

  // decode_ns() and verify_ns() before factors.
  std::int64_t measured_ns(int sequences, std::int64_t context) const;
  std::int64_t added_ns(int sequences, int drafted, std::int64_t context) const;
  std::int64_t scaled(int sequences, std::int64_t ns) const {
    return sequences <= 0 ? 0 : ns * factors_[length_bucket(sequences)] >> kRatioBits;
  }
  std::int64_t token_share(int sequences) const {
    return sequences <= 0 ? kRatioOne : token_shares_[length_bucket(sequences)];
  }
  std::int64_t share_of(int sequences) const;
  void add_verified(std::span<const StepSample> verify);
  static std::vector<Knot> averaged(std::vector<Knot> knots);
  static std::int64_t between(const std::vector<Line>& lines, std::int64_t rows,
                              std::int64_t context);

  std::vector<Line> lines_;         // as measured, by ascending batch
  std::vector<Line> table_;         // [sequences], for all batches below kTable
  std::vector<Line> prefill_;       // what prompt rows add; starts with no rows
  std::vector<Verified> verified_;  // by ascending sequences
  Factors factors_;
  std::int64_t prompt_factor_ = kRatioOne;
  DraftTable drafts_;
  std::array<std::int64_t, kLengthBuckets> token_shares_;  // of a step, in 1/kRatioOne
};

// The curves of a profile, and what is learned of their scale while running.
class StepModel {
 public:
  explicit StepModel(const LatencyProfile& profile);

  // The other class if the profile has only that one. Throws Error if the degree is missing.
  const StepCurve& curve(int tp, PairClass pair) const;
  const StepCurve& curve(const LayoutGroup& group) const {
    return curve(group.tp, pair_class(group.first, group.tp, ranks_per_node_));
  }

  // Starts a generation: all steps are as slow as whole generations of the past were, but for what
  // those of a degree and a number of sequences have of their own.
  void begin();
  // Ends one: its time as measured, and as predicted with the common factor that begin() set and
  // the factors of degrees and numbers of sequences as observe() has left them.
  void learn(std::int64_t measured_ns, std::int64_t expected_ns);
  // Time of a generation by what the profile says of it, in 1/kRatioOne.
  int scale() const;

  // Steps of a replica of a degree with so many sequences: measured by predicted time
  // (ReplicaSnapshot::speed).
  struct Speed {
    int tp = 1;
    int sequences = 0;
    int ratio = 0;  // in 1/kRatioOne; 0: nothing measured
  };
  // Takes in those of all replicas at one moment: moving averages, never outside [3/4, 4/3].
  void observe(std::span<const Speed> replicas);
  // How far drafts reach, which decides what a token costs.
  const DraftTable& drafts() const { return drafts_; }
  void set_drafts(const DraftTable& drafts);

  // Learned factor of steps of a degree with so many sequences, in 1/kRatioOne.
  int factor(int tp, int sequences) const;

  // 8-byte integers (ByteWriter). load() throws Error if they are damaged.
  std::string save() const;
  void load(std::string_view bytes);

 private:
  std::int64_t total(int tp, int bucket) const;
  void center();
  void apply();

  std::map<std::pair<int, PairClass>, StepCurve> curves_;
  // Factors in 1/2^20: of all steps, now and in whole generations, and what steps of a degree and a
  // length_bucket() of sequences have besides.
  std::int64_t common_ = std::int64_t{1} << 20, scale_ = common_;
  std::int64_t generations_ = 0;  // that scale_ has seen, up to kScaleMemory
  std::map<std::pair<int, int>, std::int64_t> own_;
  DraftTable drafts_;
  int ranks_per_node_ = 1;
};

}  // namespace taper
