// SPDX-License-Identifier: Apache-2.0
//
// Training of which no bit depends on who trains what: bundles and fixed-point sums.
#include <mpi.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "rl/CriticTrainer.hpp"
#include "rl/LearningModel.hpp"
#include "rl/PolicyTrainer.hpp"

using namespace taper;
using namespace taper::test;

namespace {

constexpr int kBundle = 48;  // tokens: samples have up to 33

struct Case {
  std::string model = "llama_b";
  PolicyLossOptions loss;
  int max_rows = 2048;
  int bundle_tokens = kBundle;
  GradientType gradients = GradientType::kFixed;
  bool learns_early = false;

  LearningModelOptions learning(const Group& dp, const Group& tp) const {
    return {.dp = dp,
            .tp = tp,
            .max_rows = max_rows,
            .model = model,
            .gradients = gradients,
            .bundle_tokens = bundle_tokens,
            .bundles_of_prompts = learns_early};
  }
};

class Policy : public LearningModel {
 public:
  Policy(const Case& c, const Group& dp, const Group& tp)
      : LearningModel(c.learning(dp, tp)),
        loss_(c.loss),
        replica_(dp.rank()),
        replicas_(dp.size()),
        options_(update_options(2, 2)) {
    if (c.learns_early) options_.stand_in = {100, 10};
  }

  // Two mini-batches in two epochs, with samples that another policy drew. Of the bundles of the
  // first one a part is learned early, on any replicas: which ones, `seed` says (0: none).
  UpdateReport update(std::uint64_t seed = 0) { return update(seed, false); }
  // Learns from some early, forgets it, and learns from all.
  UpdateReport update_after_forgetting() { return update(1, true); }

 private:
  UpdateReport update(std::uint64_t seed, bool forgets) {
    std::vector<Sample> samples = random_samples();
    for (Sample& s : samples)
      for (std::size_t t = 0; t < s.response.size(); ++t) {
        s.advantages.push_back(static_cast<float>(s.id.sample - 1) +
                               0.1f * static_cast<float>(t % 4));
        s.log_probs.push_back(-3.0f - 0.01f * static_cast<float>(t));
        s.ref_log_probs.push_back(-3.1f);
      }
    mask_some(samples);
    PolicyTrainer trainer({loss_, options_}, trained());
    if (seed > 0) learn_early(trainer, samples, seed);
    if (forgets) trainer.forget_early();
    SampleSet set = spread(samples);
    return trainer.update(set);
  }

  void learn_early(PolicyTrainer& trainer, const std::vector<Sample>& samples,
                   std::uint64_t seed) const {
    RandomStream random(seed, RandomPurpose::kTest, 0, 0);
    for (const int first : {3, 0}) {  // the prompts of the first mini-batch
      const std::vector<Sample> prompt(samples.begin() + first, samples.begin() + first + 3);
      for (const Range bundle : trainer.bundles_of(prompt)) {
        const bool is_early = random.below(3) > 0;
        if (static_cast<int>(random.below(replicas_)) == replica_ && is_early)
          trainer.learn_early(prompt, bundle);
      }
    }
  }

  PolicyLossOptions loss_;
  int replica_, replicas_;
  UpdateOptions options_;
};

PolicyLossOptions a_loss(PolicyLossKind kind) {
  PolicyLossOptions loss;
  loss.kind = kind;
  loss.entropy_coef = 0.01;
  loss.kl_coef = 0.1;
  if (kind == PolicyLossKind::kGspo) loss.aggregation = LossAggregation::kSeqMeanTokenMean;
  return loss;
}

void check_equal(const UpdateReport& a, const UpdateReport& b) {
  CHECK(a.steps == 4);
  CHECK(a.policy_loss == b.policy_loss);
  CHECK(a.kl == b.kl);
  CHECK(a.entropy == b.entropy);
  CHECK(a.clip_fraction == b.clip_fraction);
  CHECK(a.ppo_kl == b.ppo_kl);
  CHECK(a.grad_norm == b.grad_norm);
}

// Those of the pieces that this rank has.
bool same_weights(const LearningModel& part, const LearningModel& whole) {
  const auto& pieces = part.local().pieces();
  return std::all_of(pieces.begin(), pieces.end(), [&](const LocalParams::Piece& piece) {
    return std::ranges::equal(part.weights_of(piece),
                              whole.weights_of(whole.local().pieces()[piece.id]));
  });
}

}  // namespace

TEST_CASE("weights and figures have the same bits on any number of replicas") {
  const Groups g;
  for (const PolicyLossKind kind : {PolicyLossKind::kPpo, PolicyLossKind::kGspo}) {
    Case c{.loss = a_loss(kind)};
    Policy one(c, g.self, g.self);
    const UpdateReport expected = one.update();
    CHECK(expected.grad_norm > 1e-3);
    for (const int max_rows : {kBundle, 100, 2048}) {
      c.max_rows = max_rows;
      Policy many(c, g.world, g.self);
      check_equal(many.update(), expected);
      CHECK(many.weights() == one.weights());
    }
  }
}

TEST_CASE("weights and figures have the same bits for any tensor-parallel degree") {
  const Groups g;
  // Norms over heads, biases, untied and tied heads.
  int compared = 0;
  for (const std::string& model : kGoldenModels) {
    INFO(model);
    const Case c{.model = model, .loss = a_loss(PolicyLossKind::kPpo)};
    const ModelConfig config = read_model_config(golden_dir(model));
    if (g.world.size() > std::min(config.kv_heads, ParamTable(config).mlp_blocks())) continue;
    ++compared;
    Policy one(c, g.self, g.self), many(c, g.self, g.world);
    check_equal(many.update(), one.update());
    CHECK(same_weights(many, one));
  }
  CHECK((compared > 0 || g.world.size() > 2));
}

TEST_CASE("what is learned early, and by whom, changes no bit") {
  const Groups g;
  for (const PolicyLossKind kind : {PolicyLossKind::kPpo, PolicyLossKind::kGspo}) {
    Case c{.loss = a_loss(kind), .bundle_tokens = 24, .learns_early = true};
    Policy one(c, g.self, g.self);
    const UpdateReport expected = one.update();
    for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
      INFO("seed " << seed);
      Policy many(c, g.world, g.self);
      const UpdateReport report = many.update(seed);
      check_equal(report, expected);
      CHECK(report.log_prob_diff_max == expected.log_prob_diff_max);
      CHECK(many.weights() == one.weights());
    }
    // Divided last, and in other bundles, it is another sum of the same.
    c.learns_early = false;
    Policy plain(c, g.world, g.self);
    const UpdateReport report = plain.update();
    CHECK(relative(report.grad_norm, expected.grad_norm) < 1e-5);
    CHECK(relative(report.policy_loss, expected.policy_loss) < 1e-5);
    CHECK(distance(plain.weights(), one.weights()) < 1e-4);
  }
}

TEST_CASE("what was learned early can be forgotten") {
  const Groups g;
  const Case c{.loss = a_loss(PolicyLossKind::kPpo), .bundle_tokens = 24, .learns_early = true};
  Policy one(c, g.self, g.self), other(c, g.self, g.self);
  const UpdateReport expected = one.update();
  check_equal(other.update_after_forgetting(), expected);
  CHECK(other.weights() == one.weights());
}

TEST_CASE("what the samples are summed in matters where sums are plain floats") {
  const Groups g;
  if (g.world.size() == 1) return;
  const Case c{
      .loss = a_loss(PolicyLossKind::kPpo), .bundle_tokens = 0, .gradients = GradientType::kF32};
  Policy one(c, g.self, g.self), many(c, g.world, g.self);
  one.update();
  many.update();
  CHECK(many.weights() != one.weights());
}

TEST_CASE("other bundles give other bits, and nearly the same weights") {
  const Groups g;
  Case c{.loss = a_loss(PolicyLossKind::kPpo)};
  Policy some(c, g.world, g.self);
  const UpdateReport report = some.update();
  c.bundle_tokens = 16;
  Policy other(c, g.world, g.self);
  CHECK(relative(other.update().grad_norm, report.grad_norm) < 1e-5);
  CHECK(other.weights() != some.weights());
  CHECK(distance(other.weights(), some.weights()) < 1e-4);
}
