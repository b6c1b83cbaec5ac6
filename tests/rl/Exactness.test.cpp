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

  LearningModelOptions learning(const Group& dp, const Group& tp) const {
    return {.dp = dp,
            .tp = tp,
            .max_rows = max_rows,
            .model = model,
            .gradients = gradients,
            .bundle_tokens = bundle_tokens};
  }
};

class Policy : public LearningModel {
 public:
  Policy(const Case& c, const Group& dp, const Group& tp)
      : LearningModel(c.learning(dp, tp)), loss_(c.loss) {}

  // Two mini-batches in two epochs, with samples that another policy drew.
  UpdateReport update() {
    std::vector<Sample> samples = random_samples();
    for (Sample& s : samples)
      for (std::size_t t = 0; t < s.response.size(); ++t) {
        s.advantages.push_back(static_cast<float>(s.id.sample - 1) +
                               0.1f * static_cast<float>(t % 4));
        s.log_probs.push_back(-3.0f - 0.01f * static_cast<float>(t));
        s.ref_log_probs.push_back(-3.1f);
      }
    mask_some(samples);
    SampleSet set = spread(samples);
    return PolicyTrainer({loss_, update_options(2, 2)}, trained()).update(set);
  }

 private:
  PolicyLossOptions loss_;
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
