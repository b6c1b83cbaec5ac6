// SPDX-License-Identifier: Apache-2.0
#include "rl/PolicyTrainer.hpp"

#include <mpi.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "comm/Collectives.hpp"
#include "rl/LearningModel.hpp"

using namespace taper;
using namespace taper::test;

namespace {

constexpr float kTemperature = 0.8f;

PolicyLossOptions with_entropy() {
  PolicyLossOptions loss;
  loss.entropy_coef = 0.01;
  return loss;
}

// A policy, with what it drew.
class Policy : public LearningModel {
 public:
  Policy(const Group& dp, const Group& self, int max_rows, const AdamWOptions& adamw = {})
      : LearningModel({dp, self, max_rows, adamw, kTemperature}) {}

  // Groups of three random responses, with the log-probs of this policy.
  std::vector<Sample> rollout() {
    std::vector<Sample> samples = random_samples();
    for (Sample& s : samples)
      for (std::size_t t = 0; t < s.response.size(); ++t)
        s.advantages.push_back(static_cast<float>(s.id.sample - 1) +
                               0.1f * static_cast<float>(t % 4));
    std::vector<std::span<const std::int32_t>> prompts, responses;
    for (const Sample& s : samples) {
      prompts.emplace_back(s.prompt);
      responses.emplace_back(s.response);
    }
    const auto log_probs = response_log_probs(context(), prompts, responses);
    for (std::size_t i = 0; i < samples.size(); ++i) samples[i].log_probs = log_probs[i];
    return samples;
  }

  // The same, as if drawn by another policy, with references, corrections and tokens without loss:
  // one response in four has none, one in four lacks every third.
  std::vector<Sample> stale_rollout() {
    auto samples = rollout();
    RandomStream random(8, RandomPurpose::kTest, 0, 0);
    const auto shifted = [&](std::vector<float> list) {
      for (float& x : list) x += 0.3f * static_cast<float>(random.uniform() - 0.5);
      return list;
    };
    for (Sample& s : samples) {
      s.ref_log_probs = shifted(s.log_probs);
      s.log_probs = shifted(s.log_probs);
      s.correction = shifted(std::vector<float>(s.response.size(), 1.0f));
    }
    mask_some(samples);
    return samples;
  }

  UpdateReport update(const std::vector<Sample>& samples, int mini_batches = 1, int epochs = 1) {
    SampleSet set = spread(samples);
    return trainer(mini_batches, epochs).update(set);
  }
  void set_loss(const PolicyLossOptions& loss) { loss_ = loss; }
  UpdateReport update(const std::vector<Sample>& samples, const PolicyLossOptions& loss) {
    set_loss(loss);
    return update(samples);
  }
  SampleSet brought(const std::vector<Sample>& samples) {
    SampleSet set = spread(samples);
    trainer(2, 1).bring(set);
    return set;
  }

 private:
  PolicyTrainer trainer(int mini_batches, int epochs) {
    return {{loss_, update_options(mini_batches, epochs)}, trained()};
  }

  PolicyLossOptions loss_ = with_entropy();
};

std::vector<PolicyLossOptions> all_losses() {
  std::vector<PolicyLossOptions> list;
  for (const auto& [name, kind] : named_policy_losses())
    for (const auto& [how, aggregation] : named_aggregations()) {
      PolicyLossOptions o = with_entropy();
      o.kind = kind;
      o.aggregation = aggregation;
      o.kl_coef = 0.1;
      o.length_norm = 16;
      if (o.problems().empty()) list.push_back(o);
    }
  return list;
}

}  // namespace

TEST_CASE("an update does not depend on micro-batches and replicas beyond rounding") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  Policy one(self, self, 2048);
  const auto samples = one.rollout();
  const UpdateReport whole = one.update(samples);
  CHECK(whole.log_prob_diff_max == 0.0);  // scored and trained by the same forward pass
  CHECK(whole.prob_diff_max == 0.0);
  CHECK(whole.ppo_kl == 0.0);
  CHECK(whole.entropy > 1.0);
  CHECK(whole.grad_norm > 1e-3);
  for (const int max_rows : {40, 100}) {
    Policy many(world, self, max_rows);
    const UpdateReport parts = many.update(samples);
    CHECK(parts.steps == 1);
    CHECK(parts.log_prob_diff_max == 0.0);
    CHECK(relative(whole.grad_norm, parts.grad_norm) < 1e-5);
    CHECK(relative(whole.entropy, parts.entropy) < 1e-6);
    CHECK(std::abs(whole.policy_loss - parts.policy_loss) < 1e-6);
    // The same split gives the same bits.
    Policy again(world, self, max_rows);
    again.update(samples);
    CHECK(again.weights() == many.weights());
  }
}

TEST_CASE("no loss and no aggregation depends on micro-batches and replicas beyond rounding") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  const auto samples = Policy(self, self, 2048).stale_rollout();
  const auto losses = all_losses();
  REQUIRE(losses.size() == 9);
  AdamWOptions unclipped;  // or aggregations would differ by a factor only, which clipping removes
  unclipped.clip_norm = 0.0;
  std::vector<std::vector<float>> gradients;
  for (const PolicyLossOptions& loss : losses) {
    Policy one(self, self, 2048, unclipped), many(world, self, 40, unclipped);
    const UpdateReport whole = one.update(samples, loss), parts = many.update(samples, loss);
    INFO("loss " << static_cast<int>(loss.kind) << ", aggregation "
                 << static_cast<int>(loss.aggregation));
    gradients.push_back(one.gradient());
    CHECK(distance(gradients.back(), many.gradient()) < 1e-5);
    CHECK(whole.policy_loss != 0.0);
    CHECK(std::abs(whole.policy_loss - parts.policy_loss) <
          1e-6 * (1 + std::abs(whole.policy_loss)));
    CHECK(relative(whole.kl, parts.kl) < 1e-5);
    CHECK(relative(whole.ppo_kl, parts.ppo_kl) < 1e-5);
    CHECK(whole.clip_fraction == parts.clip_fraction);
  }
  // Each is a gradient of its own.
  for (std::size_t i = 1; i < gradients.size(); ++i)
    CHECK(distance(gradients[i - 1], gradients[i]) > 1e-3);
}

TEST_CASE("the reported losses are those of the formulas, token by token") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  Policy first(self, self, 2048);
  const auto now = first.rollout(), samples = first.stale_rollout();
  StepTotals totals;
  for (const Sample& s : samples) totals.add(s.loss_tokens());
  for (PolicyLossOptions loss : all_losses()) {
    loss.clip_low = loss.clip_high = 0.01;  // as near as the samples are to the policy
    LossSums expected;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const Sample& s = samples[i];
      if (s.loss_tokens() == 0) continue;
      const std::vector<float>& log_probs = now[i].log_probs;
      const double w = token_weight(loss, totals, s.loss_tokens());
      for (std::size_t t = 0; t < log_probs.size(); ++t)
        if (s.carries_loss(t))
          add_token_loss(loss,
                         {log_probs[t], s.log_probs[t], s.ref_log_probs[t], s.advantages[t], 0.0f,
                          s.correction[t], mean_log_ratio(s, log_probs)},
                         w, expected);
    }
    Policy policy(world, self, 64);
    const UpdateReport report = policy.update(samples, loss);
    INFO("loss " << static_cast<int>(loss.kind) << ", aggregation "
                 << static_cast<int>(loss.aggregation));
    CHECK(relative(expected.policy, report.policy_loss) < 1e-6);
    CHECK(relative(expected.kl, report.kl) < 1e-6);
    CHECK(expected.clipped > 0.0);
    CHECK(relative(expected.clipped / expected.tokens, report.clip_fraction) < 1e-12);
    CHECK(relative(expected.ppo_kl / expected.tokens, report.ppo_kl) < 1e-6);
  }
}

TEST_CASE("tokens without a loss change nothing, wherever they stand") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  Policy with(world, self, 128), without(world, self, 128);
  auto samples = with.rollout();
  for (Sample& s : samples)
    if (s.id.sample == 1) s.mask.assign(s.response.size(), 0);
  auto left = samples;
  std::erase_if(left, [](const Sample& s) { return s.id.sample == 1; });
  with.update(samples);
  without.update(left);
  CHECK(distance(with.gradient(), without.gradient()) < 1e-5);
}

TEST_CASE("a mini-batch without any loss makes no step") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  Policy policy(world, self, 128);
  auto samples = policy.rollout();
  for (Sample& s : samples)
    if (s.id.prompt < 2) s.mask.assign(s.response.size(), 0);
  const UpdateReport half = policy.update(samples, 2);
  CHECK(half.steps == 1);
  CHECK(half.empty == 1);
  for (Sample& s : samples) s.mask.assign(s.response.size(), 0);
  const auto before = policy.weights();
  const UpdateReport none = policy.update(samples, 2);
  CHECK(none.steps == 0);
  CHECK(none.empty == 2);
  CHECK(std::isfinite(none.policy_loss));
  CHECK(policy.weights() == before);
}

TEST_CASE("mini-batches and epochs work with every loss") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  for (const PolicyLossOptions& loss : all_losses()) {
    if (loss.aggregation != LossAggregation::kSeqMeanTokenMean) continue;
    Policy policy(world, self, 128);
    auto samples = policy.rollout();
    for (Sample& s : samples) s.ref_log_probs = s.log_probs;
    policy.set_loss(loss);
    const UpdateReport report = policy.update(samples, 2, 3);
    CHECK(report.steps == 6);
    CHECK(report.log_prob_diff_max == 0.0);
    CHECK(report.ppo_kl != 0.0);
    CHECK(report.kl > 0.0);  // later steps have left the reference
  }
}

TEST_CASE("mini-batches and epochs are optimizer steps, and later ones see changed weights") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  Policy policy(world, self, 128);
  const auto samples = policy.rollout();
  const auto before = policy.weights();
  const UpdateReport report = policy.update(samples, 2, 3);
  CHECK(report.steps == 6);
  CHECK(report.skipped == 0);
  CHECK(report.log_prob_diff_max == 0.0);  // measured before the first step
  CHECK(report.ppo_kl != 0.0);
  CHECK(policy.weights() != before);
}

TEST_CASE("a log-prob that is no number does not pass for an exact one") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  AdamWOptions adamw;
  adamw.on_non_finite = AdamWOptions::OnNonFinite::kSkip;
  Policy policy(world, self, 128, adamw);
  auto samples = policy.rollout();
  samples.front().log_probs.front() = std::numeric_limits<float>::quiet_NaN();
  const UpdateReport report = policy.update(samples);
  CHECK(report.skipped == 1);
  CHECK(report.log_prob_diff_max == std::numeric_limits<double>::infinity());
  CHECK(report.prob_diff_max == std::numeric_limits<double>::infinity());
}

TEST_CASE("every sample is trained by one replica") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  Policy policy(world, self, 128);
  const auto samples = policy.rollout();
  std::vector<std::int64_t> times(samples.size(), 0);
  const SampleSet brought = policy.brought(samples);
  for (const int row : brought.rows()) ++times[row];
  all_reduce_sum(world, times);
  for (const auto n : times) CHECK(n == 1);
}
