// SPDX-License-Identifier: Apache-2.0
#include "rl/Experience.hpp"

#include <catch2/catch_test_macros.hpp>

#include "rl/GoldenRl.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("truncated responses lose their loss where they shall, but count in their group") {
  SampleSet plain(golden_samples("odd", false)), cut = plain;
  ExperienceOptions options;
  CHECK(prepare_samples(plain, options, 0.0).truncated_share == 0.0);
  options.mask_truncated = true;
  CHECK(prepare_samples(cut, options, 0.0).truncated_share == near(3.0 / 8));
  const std::vector<Sample>&kept = plain.here(), &masked = cut.here();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const bool truncated = kept[i].finish == FinishReason::kLength;
    CHECK(kept[i].loss_tokens() == std::ssize(kept[i].response));
    CHECK(masked[i].loss_tokens() == (truncated ? 0 : std::ssize(kept[i].response)));
    CHECK(cut.all()[i].loss_tokens == masked[i].loss_tokens());
    CHECK(masked[i].advantages == kept[i].advantages);
  }
}

TEST_CASE("the reward is the score less the KL of all tokens, with the coefficient of now") {
  SampleSet set(golden_samples("ragged", false));
  std::vector<Sample>& samples = set.here();
  ExperienceOptions options;
  options.kl.coef = 7.0;
  options.kl.place = KlPlace::kReward;
  options.kl.estimator = KlEstimator::kK2;
  const ExperienceReport report = prepare_samples(set, options, 0.5);
  CHECK(report.kl_coef == 0.5);
  CHECK(report.kl == near(mean_kl(set, KlEstimator::kK2)));
  for (const Sample& s : samples) {
    double kl = 0.0;
    for (std::size_t t = 0; t < s.response.size(); ++t)
      kl += kl_estimate(KlEstimator::kK2, s.log_probs[t], s.ref_log_probs[t]).value;
    CHECK(s.reward == near(s.score - 0.5 * kl));
  }
}

TEST_CASE("without KL in the reward the reward is the score, and no reference is needed") {
  SampleSet set(golden_samples("ragged", false));
  std::vector<Sample>& samples = set.here();
  for (Sample& s : samples) s.ref_log_probs.clear();
  ExperienceOptions options;
  options.kl.coef = 0.1;  // in the loss
  CHECK(prepare_samples(set, options, 0.1).kl_coef == 0.0);
  for (const Sample& s : samples) CHECK(s.reward == s.score);
}

TEST_CASE("what is rejected counts in no statistics of tokens") {
  SampleSet set(golden_samples("ragged", false));
  std::vector<Sample>& samples = set.here();
  ExperienceOptions options;
  options.advantage.estimator = AdvantageEstimator::kReinforcePlusPlusBaseline;
  options.correction.rejection = RejectionLevel::kToken;
  options.correction.low = 0.6;
  prepare_samples(set, options, 0.0);
  double sum = 0.0, count = 0.0;
  for (const Sample& s : samples)
    for (std::size_t t = 0; t < s.response.size(); ++t)
      if (s.carries_loss(t)) {
        sum += s.advantages[t];
        count += 1.0;
      }
  CHECK(count > 0.0);
  CHECK(count < 49.0);
  CHECK(sum / count == near(0.0));
}
