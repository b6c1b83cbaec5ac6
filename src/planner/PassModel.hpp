// SPDX-License-Identifier: Apache-2.0
//
// What passes over whole sequences and optimizer steps cost, between and beyond the samples of a
// profile. Prices placements (placement/); no run decides by it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "planner/LatencyProfile.hpp"

namespace taper {

// A micro-batch.
struct PassWork {
  std::int64_t rows = 0;     // tokens that the model reads
  std::int64_t targets = 0;  // of them with log-probs
  double length = 0;         // mean over rows of the length of their sequence
};

// A pass costs a time of its own, a time per row, per row and position of its sequence, and per
// target: fitted to the samples with the least squares of relative errors, never negative. An
// optimizer step costs a part that replicas share out and a part that they do not.
class PassModel {
 public:
  // Throws Error if the profile has no passes.
  explicit PassModel(const LatencyProfile& profile);

  // Degrees with passes of both kinds and steps, ascending.
  const std::vector<int>& degrees() const { return degrees_; }
  // Of one replica. Not of kUpdate. The other class if there is only that one.
  std::int64_t pass_ns(PassKind kind, int tp, PairClass pair, const PassWork& work) const;
  // An optimizer step of so many replicas; `pair` is the class of all their ranks.
  std::int64_t update_ns(int tp, int replicas, PairClass pair) const;

  // |predicted / measured - 1| of all passes, ascending.
  const std::vector<double>& errors() const { return errors_; }

 private:
  // Of a pass: fixed, rows, rows x length, targets. Of a step: fixed, shared out.
  using Factors = std::array<double, 4>;
  const Factors& factors(PassKind kind, int tp, PairClass pair) const;

  std::map<std::tuple<PassKind, int, PairClass>, Factors> factors_;
  std::map<std::tuple<int, int, PairClass>, std::int64_t> updates_;  // as measured
  std::vector<int> degrees_;
  std::vector<double> errors_;
};

}  // namespace taper
