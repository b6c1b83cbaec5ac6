// SPDX-License-Identifier: Apache-2.0
//
// Step times between and beyond the samples of a profile. Integers only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ReplicaSnapshot.hpp"
#include "planner/LatencyProfile.hpp"
#include "shard/Layout.hpp"

namespace taper {

// Step time of one TP degree and pair class as a function of (new tokens, sequences, context):
// piecewise linear in the mean context on lines of equal batch, linear between the lines; what
// prompt rows add likewise, on lines of equal rows. Beyond
// the samples it goes on with the last slope, which is never negative: products cost time per row,
// attention per position.
class StepCurve {
 public:
  // The samples of one degree and class; at least one decode step among them.
  explicit StepCurve(std::span<const StepSample> samples);

  // A step of `sequences` tokens, one for each sequence, over `context` summed positions.
  std::int64_t decode_ns(int sequences, std::int64_t context) const;
  // What `rows` prompt positions in the same step add if their sequence has `context` positions.
  std::int64_t prefill_ns(std::int64_t rows, std::int64_t context) const;
  std::int64_t step_ns(int new_tokens, int sequences, std::int64_t context) const {
    return decode_ns(sequences, context) +
           prefill_ns(new_tokens - sequences, context / std::max(1, sequences));
  }

  // Multiplies all times by factor / kRatioOne.
  void set_factor(int factor) { factor_ = factor; }

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

  static std::vector<Knot> averaged(std::vector<Knot> knots);
  static std::int64_t between(const std::vector<Line>& lines, std::int64_t rows,
                              std::int64_t context);

  std::vector<Line> lines_;    // as measured, by ascending batch
  std::vector<Line> table_;    // [sequences], for all batches below kTable
  std::vector<Line> prefill_;  // what prompt rows add; starts with no rows
  std::int64_t factor_ = kRatioOne;
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

  // Starts a generation: all degrees are as slow as whole generations of the past were.
  void begin();
  // Ends one: its time as measured, and as the factors of its start let expect.
  void learn(std::int64_t measured_ns, std::int64_t expected_ns);
  // Time of a generation by what the profile says of it, in 1/kRatioOne.
  int scale() const;

  // Takes in the measured / predicted ratio of one degree (ReplicaSnapshot::speed):
  // moving averages, never outside [3/4, 4/3].
  void observe(int tp, int speed);
  // Learned factor of a degree, in 1/kRatioOne.
  int factor(int tp) const;

  // 8-byte integers (ByteWriter). load() throws Error if they are damaged.
  std::string save() const;
  void load(std::string_view bytes);

 private:
  std::int64_t total(int tp) const;
  void apply();

  std::map<std::pair<int, PairClass>, StepCurve> curves_;
  // Factors in 1/2^20: of all degrees, now and in whole generations, and what a degree has besides.
  std::int64_t common_ = std::int64_t{1} << 20, scale_ = common_;
  std::int64_t generations_ = 0;  // that scale_ has seen, up to kScaleMemory
  std::map<int, std::int64_t> own_;
  int ranks_per_node_ = 1;
};

}  // namespace taper
