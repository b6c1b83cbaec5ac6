// SPDX-License-Identifier: Apache-2.0
#include "rl/PolicyLoss.hpp"

#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "rl/GoldenRl.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Approx;

namespace {

double total_loss(const PolicyLossOptions& o, TokenInput t, double w) {
  LossSums sums;
  add_token_loss(o, t, w, sums);
  return sums.policy + o.kl_coef * sums.kl;
}

PolicyLossOptions options_of(const Json& c) {
  PolicyLossOptions o;
  o.kind = named(named_policy_losses(), c["kind"]);
  o.aggregation = named(named_aggregations(), c["aggregation"]);
  o.clip_low = c["clip_low"].get<double>();
  o.clip_high = c["clip_high"].get<double>();
  o.dual_clip = c["dual_clip"].get<double>();
  o.kl = golden_estimator(c["kl"]);
  o.kl_coef = c["kl_coef"].get<double>();
  o.entropy_coef = c["entropy_coef"].get<double>();
  o.length_norm = c["length_norm"].get<double>();
  return o;
}

// The new policy's side of a golden batch.
struct NewPolicy {
  explicit NewPolicy(const Json& name) : batch(golden_rl()["batches"][name.get<std::string>()]) {}
  std::vector<float> log_probs(std::size_t i) const { return floats(batch["log_probs"][i]); }
  std::vector<float> entropies(std::size_t i) const { return floats(batch["entropies"][i]); }
  std::vector<float> corrections(std::size_t i) const { return floats(batch["corrections"][i]); }

  const Json& batch;
};

void check_sums(const LossSums& sums, const PolicyLossOptions& o, const Json& c) {
  const auto value = [&](const char* name) { return near(c["sums"][name].get<double>()); };
  CHECK(sums.policy == value("policy"));
  CHECK(sums.kl == value("kl"));
  CHECK(sums.entropy == value("entropy"));
  CHECK(sums.policy + o.kl_coef * sums.kl - o.entropy_coef * sums.entropy == value("total"));
  CHECK(sums.clipped / sums.tokens == value("clip_fraction"));
  CHECK(sums.dual_clipped / sums.tokens == value("dual_clip_fraction"));
  CHECK(sums.ppo_kl / sums.tokens == value("ppo_kl"));
}

}  // namespace

TEST_CASE("losses and gradients are those of PyTorch for all kinds and aggregations") {
  const Json& cases = golden_rl()["losses"];
  REQUIRE(cases.size() == 33);
  for (const Json& c : cases) {
    INFO(c["batch"] << " " << c["kind"] << " " << c["aggregation"] << " kl " << c["kl"]);
    const auto samples = golden_samples(c["batch"], c["mask_truncated"].get<bool>());
    const NewPolicy policy(c["batch"]);
    const PolicyLossOptions o = options_of(c);
    CHECK(o.problems().empty());
    StepTotals totals;
    for (const Sample& s : samples) totals.add(s.loss_tokens());
    LossSums sums;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const Sample& s = samples[i];
      const auto log_probs = policy.log_probs(i), entropies = policy.entropies(i),
                 corrections = policy.corrections(i);
      const auto gradient = floats(c["gradient"][i]), by_entropy = floats(c["entropy_gradient"][i]);
      const double w = token_weight(o, totals, s.loss_tokens());
      for (std::size_t t = 0; t < s.response.size(); ++t) {
        if (!s.carries_loss(t)) {
          CHECK(gradient[t] == 0.0f);
          continue;
        }
        TokenInput input{log_probs[t], s.log_probs[t], s.ref_log_probs[t], s.advantages[t],
                         entropies[t]};
        if (c["corrected"].get<bool>()) input.correction = corrections[t];
        if (o.needs_sequences()) input.mean_log_ratio = mean_log_ratio(s, log_probs);
        INFO("sample " << i << " token " << t);
        CHECK(add_token_loss(o, input, w, sums) == near(gradient[t]));
        CHECK(-o.entropy_coef * w == near(by_entropy[t]));
      }
    }
    check_sums(sums, o, c);
  }
}

TEST_CASE("a loss of sequences wants each of the same weight") {
  PolicyLossOptions o;
  o.kind = PolicyLossKind::kGspo;
  REQUIRE(o.problems().size() == 1);
  CHECK(o.problems().front().find("Algorithm/Policy Loss gspo") != std::string::npos);
  o.aggregation = LossAggregation::kSeqMeanTokenMean;
  CHECK(o.problems().empty());
}

TEST_CASE("sequences without a token that carries a loss are not counted") {
  StepTotals totals;
  for (const int tokens : {3, 0, 5}) totals.add(tokens);
  CHECK(totals.tokens == 8);
  CHECK(totals.sequences == 2);
}

TEST_CASE("the clipped loss has the values of its definition") {
  PolicyLossOptions o;
  o.clip_low = 0.2;
  o.clip_high = 0.28;
  const auto loss = [&](double ratio, float advantage) {
    return total_loss(o, {static_cast<float>(std::log(ratio)), 0.0f, 0.0f, advantage, 0.0f}, 1.0);
  };
  CHECK(loss(1.0, 2.0f) == Approx(-2.0));
  CHECK(loss(1.1, 2.0f) == Approx(-2.2));
  CHECK(loss(1.5, 2.0f) == Approx(-2.56));  // clipped above
  CHECK(loss(0.5, 2.0f) == Approx(-1.0));   // a falling ratio is not clipped for a good response
  CHECK(loss(0.5, -2.0f) == Approx(1.6));   // clipped below
  CHECK(loss(1.5, -2.0f) == Approx(3.0));
  CHECK(loss(9.0, -2.0f) == Approx(6.0));  // dual clip at 3
}

TEST_CASE("slopes are the derivatives of the loss, for all KL estimators") {
  for (const auto kl : {KlEstimator::kK1, KlEstimator::kK2, KlEstimator::kK3})
    for (const double coef : {0.0, 0.3})
      for (const float advantage : {1.5f, -0.7f, 0.0f})
        for (const float now : {-3.0f, -1.13f, -0.91f, -0.2f}) {
          PolicyLossOptions o;
          o.kl = kl;
          o.kl_coef = coef;
          const TokenInput t{now, -1.0f, -1.4f, advantage, 0.5f};
          LossSums sums;
          const double slope = add_token_loss(o, t, 0.25, sums);
          const float h = 1e-3f;
          TokenInput up = t, down = t;
          up.log_prob += h;
          down.log_prob -= h;
          const double difference = (total_loss(o, up, 0.25) - total_loss(o, down, 0.25)) /
                                    (static_cast<double>(up.log_prob) - down.log_prob);
          INFO("kl " << static_cast<int>(kl) << " coef " << coef << " advantage " << advantage
                     << " now " << now);
          CHECK(slope == Approx(difference).margin(2e-5));
        }
}

TEST_CASE("extreme ratios stay finite") {
  PolicyLossOptions o;
  o.kl_coef = 0.1;
  for (const float now : {0.0f, -80.0f}) {
    LossSums sums;
    const double slope = add_token_loss(o, {now, -60.0f, -70.0f, -1.0f, 0.0f}, 1.0, sums);
    CHECK(std::isfinite(slope));
    CHECK(std::isfinite(sums.policy));
    CHECK(std::isfinite(sums.kl));
  }
}

TEST_CASE("token weights of the four aggregations") {
  const StepTotals totals{20, 4};
  PolicyLossOptions o;
  o.length_norm = 8;
  o.aggregation = LossAggregation::kTokenMean;
  CHECK(token_weight(o, totals, 5) == Approx(1.0 / 20));
  o.aggregation = LossAggregation::kSeqMeanTokenSum;
  CHECK(token_weight(o, totals, 5) == Approx(1.0 / 4));
  o.aggregation = LossAggregation::kSeqMeanTokenMean;
  CHECK(token_weight(o, totals, 5) == Approx(1.0 / 20));
  CHECK(token_weight(o, totals, 10) == Approx(1.0 / 40));
  o.aggregation = LossAggregation::kSeqMeanTokenSumNorm;
  CHECK(token_weight(o, totals, 5) == Approx(1.0 / 32));
}
