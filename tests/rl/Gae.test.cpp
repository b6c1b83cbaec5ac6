// SPDX-License-Identifier: Apache-2.0
#include "rl/Gae.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "rl/Advantage.hpp"
#include "rl/GoldenRl.hpp"
#include "rl/ValueLoss.hpp"

using namespace taper;
using namespace taper::test;

namespace {

void check_lists(const std::vector<float>& values, const Json& expected) {
  REQUIRE(values.size() == expected.size());
  for (std::size_t t = 0; t < values.size(); ++t)
    CHECK(values[t] == near(expected[t].get<double>()));
}

}  // namespace

TEST_CASE("advantages and returns are those of PyTorch, whatever discounts, masks and rewards") {
  const Json& cases = golden_rl()["gae"];
  REQUIRE(cases.size() == 36);
  for (const Json& c : cases) {
    SampleSet set(golden_samples(c["batch"], c["loss_tokens"]));
    const std::vector<Sample>& samples = set.here();
    AdvantageOptions options;
    options.estimator = AdvantageEstimator::kGae;
    options.gamma = c["gamma"].get<double>();
    options.lambda = c["lambda"].get<double>();
    if (!c["whitened"].get<bool>()) options.normalization = AdvantageNormalization::kNone;
    CHECK(options.problems().empty());
    KlOptions kl;
    if (!c["kl"].is_null()) {
      kl.place = KlPlace::kReward;
      kl.coef = c["kl"]["coef"].get<double>();
      kl.estimator = golden_estimator(c["kl"]["estimator"]);
    }
    std::vector<std::vector<double>> rewards;
    for (const Sample& s : samples) rewards.push_back(token_rewards(s, s.score, kl, kl.coef));
    set_advantages(set, rewards, options);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      INFO(c["batch"] << " gamma " << c["gamma"] << " lambda " << c["lambda"] << " sample " << i);
      check_lists(samples[i].advantages, c["values"][i]);
      check_lists(samples[i].returns, c["returns"][i]);
    }
    CHECK(explained_variance(set) == near(c["explained_variance"].get<double>()));
  }
}

TEST_CASE("the ends of lambda are the next value alone and the rewards alone") {
  const std::vector<double> rewards{0.0, -0.5, 2.0};
  const std::vector<float> values{1.0f, 0.25f, -1.0f};
  const GaeEstimate next = gae(rewards, values, 0.5, 0.0), all = gae(rewards, values, 0.5, 1.0);
  CHECK(next.advantages == std::vector<double>{0.5 * 0.25 - 1.0, -0.5 - 0.5 - 0.25, 2.0 + 1.0});
  // With lambda 1 the returns are the discounted rewards, whatever the critic says.
  CHECK(all.returns == std::vector<double>{0.25 * 2.0 - 0.25, -0.5 + 1.0, 2.0});
}

TEST_CASE("a response of one token has its reward less its value, none has nothing") {
  const std::vector<double> reward{3.0};
  const std::vector<float> value{1.0f};
  const GaeEstimate one = gae(reward, value, 0.9, 0.9);
  CHECK(one.advantages == std::vector<double>{2.0});
  CHECK(one.returns == reward);
  CHECK(gae({}, {}, 1.0, 1.0).advantages.empty());
}

TEST_CASE("where no token carries a loss, advantages stay finite") {
  for (const char* batch : {"odd", "ragged"}) {
    SampleSet set(golden_samples(batch, false));
    std::vector<Sample>& samples = set.here();
    std::vector<std::vector<double>> rewards;
    for (Sample& s : samples) {
      s.mask.assign(s.response.size(), 0);
      rewards.push_back(token_rewards(s, s.score, {}, 0.0));
    }
    set_advantages(set, rewards, {AdvantageEstimator::kGae});
    for (const Sample& s : samples)
      for (const float a : s.advantages) CHECK(std::isfinite(a));
    CHECK(explained_variance(set) == 0.0);
  }
}
