// SPDX-License-Identifier: Apache-2.0
#include "rl/PolicyTrainer.hpp"

#include <mpi.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "base/Random.hpp"
#include "comm/Collectives.hpp"
#include "model/GoldenModel.hpp"

using namespace taper;
using namespace taper::test;

namespace {

constexpr float kTemperature = 0.8f;

TrainPassOptions pass_options(int max_rows) {
  TrainPassOptions o;
  o.max_rows = max_rows;
  o.checkpointing = Checkpointing::kNo;
  return o;
}

// A golden model with its optimizer, trained by data-parallel ranks.
class Policy {
 public:
  Policy(const Group& dp, const Group& self, int max_rows, const AdamWOptions& adamw = {})
      : dp_(dp),
        model_("llama_b", self, WeightType::kF32, pass_options(max_rows)),
        arena_(plan()),
        adamw_(model_.layout, self, dp, adamw, arena_),
        context_{model_.exec,  *model_.view,           model_.parallel,
                 *model_.pass, pass_options(max_rows), {model_.config.vocab, kTemperature}} {
    std::copy_n(model_.values.begin() + adamw_.begin(), adamw_.size(), adamw_.master().data());
  }

  // Groups of three random responses, with the log-probs of this policy.
  std::vector<Sample> rollout() {
    RandomStream random(7, RandomPurpose::kTest, 0, 0);
    const auto ids = [&](int n) {
      std::vector<std::int32_t> list;
      for (int i = 0; i < n; ++i)
        list.push_back(static_cast<std::int32_t>(random.below(model_.config.vocab)));
      return list;
    };
    std::vector<Sample> samples;
    for (int i = 0; i < 12; ++i) {
      Sample s;
      s.ordinal = i / 3;
      s.sample = i % 3;
      s.prompt = i % 3 == 0 ? ids(2 + i) : samples.back().prompt;
      s.response = ids(1 + (i * 7) % 20);
      s.advantage = static_cast<float>(i % 3 - 1);
      samples.push_back(std::move(s));
    }
    std::vector<std::span<const std::int32_t>> prompts, responses;
    for (const Sample& s : samples) {
      prompts.emplace_back(s.prompt);
      responses.emplace_back(s.response);
    }
    const auto scores = score_responses(context_, prompts, responses);
    for (std::size_t i = 0; i < samples.size(); ++i) samples[i].log_probs = scores[i];
    return samples;
  }

  UpdateReport update(const std::vector<Sample>& samples, int mini_batches = 1, int epochs = 1) {
    return trainer(mini_batches, epochs).update(samples);
  }
  std::vector<int> trained_here(const std::vector<Sample>& samples) {
    return trainer(2, 1).trained_here(samples);
  }

  const std::vector<float>& weights() const { return model_.values; }

 private:
  MemoryPlan plan() {
    MemoryPlan plan;
    ShardedAdamW::plan(plan, model_.layout, dp_);
    return plan;
  }
  PolicyTrainer trainer(int mini_batches, int epochs) {
    PolicyTrainerOptions options;
    options.schedule.peak = 1e-3;
    options.loss.entropy_coef = 0.01;
    options.mini_batches = mini_batches;
    options.epochs = epochs;
    return {options, context_, dp_, *model_.gradients, adamw_, [this] { publish(); }};
  }
  void publish() {
    std::vector<std::int64_t> counts(dp_.size());
    all_gather(dp_, counts, std::vector<std::int64_t>{adamw_.size()});
    all_gather_v(dp_, model_.values, adamw_.master(), counts);
    model_.pack();
  }

  const Group& dp_;
  GoldenModel model_;
  Arena arena_;
  ShardedAdamW adamw_;
  ScoreContext context_;
};

double relative(double a, double b) {
  return std::abs(a - b) / std::max(std::abs(a), 1e-12);
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
  for (const int i : policy.trained_here(samples)) ++times[i];
  all_reduce_sum(world, times);
  for (const auto n : times) CHECK(n == 1);
}
