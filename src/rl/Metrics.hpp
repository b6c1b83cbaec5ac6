// SPDX-License-Identifier: Apache-2.0
//
// Figures of an iteration under the names that verl users know.
#pragma once

#include <vector>

#include "base/MetricValues.hpp"
#include "rl/CriticTrainer.hpp"
#include "rl/DraftTrainer.hpp"
#include "rl/DynamicSampling.hpp"
#include "rl/Experience.hpp"
#include "rl/PolicyTrainer.hpp"
#include "rl/SampleSet.hpp"

namespace taper {

// Of all responses; scores and rewards of the scored ones, of which there must be one.
MetricValues rollout_metrics(const std::vector<SampleSummary>& samples);
// kl_coef: of the KL in the loss; 0 without it.
MetricValues update_metrics(const UpdateReport& report, double kl_coef);
MetricValues critic_metrics(const CriticReport& report);
MetricValues draft_metrics(const DraftReport& report);
// Of the values, returns and advantages of the tokens that carry a loss; none if no token does.
// Collective over the ranks of the samples.
MetricValues value_metrics(const SampleSet& samples);
MetricValues experience_metrics(const ExperienceReport& report, const ExperienceOptions& options);
// Where the distribution that drew the tokens may differ from the trained one.
MetricValues mismatch_metrics(const MismatchReport& report,
                              const RolloutCorrectionOptions& options);

// Of dynamic sampling.
MetricValues group_metrics(const GroupCounts& groups);

}  // namespace taper
