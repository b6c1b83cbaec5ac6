// SPDX-License-Identifier: Apache-2.0
//
// What a critic learns, as verl and OpenRLHF compute it; doc/algorithms.md has the formulas.
#pragma once

#include "rl/SampleSet.hpp"

namespace taper {

// What one response token adds.
struct ValueInput {
  float value;      // now
  float old_value;  // when the advantages were made
  float target;     // the return
};

// Weighted sums over tokens; add them up over micro-batches and ranks.
struct ValueSums {
  double loss = 0.0;     // aggregated
  double clipped = 0.0;  // tokens whose clipped value has the larger loss
  double value = 0.0;    // sum of values
  double tokens = 0.0;
};

// Half the squared error of one token of weight w, or that of the value held within `clip` of the
// old one if it is larger (0: no clip). Adds to the sums; returns the slope of the loss by the
// value.
double add_value_loss(double clip, const ValueInput& token, double w, ValueSums& sums);

// The share of the variance of the returns that the values explain, over the tokens that carry a
// loss: 1 - var(return - value) / (var(return) + 1e-5), unbiased; 0 of fewer than two tokens.
// Collective over the ranks of the samples.
double explained_variance(const SampleSet& samples);

}  // namespace taper
