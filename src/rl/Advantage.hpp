// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rl/SampleSet.hpp"

namespace taper {

// How rewards become advantages; doc/algorithms.md has formulas and sources.
enum class AdvantageEstimator {
  kGrpo,                       // r - group mean, by the group's deviation
  kDrGrpo,                     // r - group mean
  kRloo,                       // r - mean of the others of the group
  kReinforcePlusPlus,          // return-to-go of each token
  kReinforcePlusPlusBaseline,  // r - group mean, whitened over the batch
  kGae,                        // of each token, by the values of a critic
};

// What advantages are divided by: kDefault is the estimator's own way, kGroup the deviation of the
// group, kBatch a deviation over all samples of the iteration (doc/algorithms.md).
enum class AdvantageNormalization { kDefault, kGroup, kBatch, kNone };

struct AdvantageOptions {
  AdvantageEstimator estimator = AdvantageEstimator::kGrpo;
  AdvantageNormalization normalization = AdvantageNormalization::kDefault;
  double gamma = 1.0;   // discount of later rewards, of estimators that see each token
  double lambda = 1.0;  // of kGae: 0 trusts the critic's next value, 1 only what came

  // Whether samples of a prompt are compared: groups of one teach nothing then.
  bool compares_groups() const {
    return estimator != AdvantageEstimator::kReinforcePlusPlus && !needs_values();
  }
  // Whether a critic is needed.
  bool needs_values() const { return estimator == AdvantageEstimator::kGae; }
  // kDefault resolved.
  AdvantageNormalization normalization_used() const;
  std::vector<std::string> problems() const;
};

// The names that run files give them.
std::vector<std::pair<std::string, AdvantageEstimator>> named_estimators();
std::vector<std::pair<std::string, AdvantageNormalization>> named_normalizations();

// Sets the advantages of all response tokens, and with kGae, which needs values, the returns.
// rewards[k] are the token rewards of samples.here()[k]; of a response without tokens
// Sample::reward counts. All samples count in the statistics of scores; in those of tokens only
// tokens that carry a loss. Sums are over the tokens of a sample, then over samples in their order:
// the same bits on any ranks, in any layout. Collective over the ranks of the samples.
void set_advantages(SampleSet& samples, const std::vector<std::vector<double>>& rewards,
                    const AdvantageOptions& options);

}  // namespace taper
