// SPDX-License-Identifier: Apache-2.0
//
// Corrects for responses that were drawn from another distribution than the one that is trained.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rl/SampleSet.hpp"

namespace taper {

// Which ratio of the probability in training to that in sampling counts: of each token, the product
// over a sequence, or the geometric mean over a sequence.
enum class ImportanceLevel { kNone, kToken, kSequence };
enum class RejectionLevel { kNone, kToken, kSequence, kGeometric };

struct RolloutCorrectionOptions {
  ImportanceLevel weights = ImportanceLevel::kNone;
  double cap = 2.0;        // largest weight
  bool normalize = false;  // weights divided by their mean
  RejectionLevel rejection = RejectionLevel::kNone;
  double low = 0.5, high = 2.0;  // ratios outside carry no loss

  bool is_on() const {
    return weights != ImportanceLevel::kNone || rejection != RejectionLevel::kNone;
  }
  std::vector<std::string> problems() const;
};

std::vector<std::pair<std::string, ImportanceLevel>> named_importance_levels();
std::vector<std::pair<std::string, RejectionLevel>> named_rejection_levels();

// How far the trained distribution is from the one that drew the tokens, d = log of their ratio, as
// verl's rollout_corr/ metrics have it. Over the tokens that carry a loss before rejection.
struct MismatchReport {
  double kl = 0.0;                          // mean of -d (k1)
  double k3_kl = 0.0;                       // mean of exp(d) - d - 1
  double ppl_ratio = 1.0;                   // mean over sequences of exp(-mean d)
  double chi2_token = 0.0, chi2_seq = 0.0;  // mean squared ratio less 1
  double log_ratio_abs_max = 0.0;           // largest |d|
  double weight_mean = 1.0, weight_min = 1.0, weight_max = 1.0;  // truncated, before normalization
  double effective_sample_size = 1.0;                            // share: (sum w)^2 / (n sum w^2)
  double rejected_tokens = 0.0, rejected_sequences = 0.0;  // shares; sequences with such a token
};

// Sets correction and mask of the samples. Tokens that carry no loss stay so, and do not count. The
// report is the same on all ranks. Collective over the ranks of the samples.
MismatchReport correct_rollout(SampleSet& samples, const RolloutCorrectionOptions& options);

}  // namespace taper
