// SPDX-License-Identifier: Apache-2.0
#include "rl/CriticTrainer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>

#include "base/Error.hpp"
#include "rl/LearningModel.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

// Parallel over `dp`, or over `tp`.
class CriticModel : public LearningModel {
 public:
  CriticModel(const Group& dp, const Group& tp, int max_rows, const AdamWOptions& adamw = {})
      : LearningModel({dp, tp, max_rows, adamw, 1.0f, 5, {"critic"}}) {}

  CriticTrainer trainer(int mini_batches = 1, int epochs = 1) {
    CriticTrainerOptions o = options;
    o.update = update_options(mini_batches, epochs);
    return {o, trained()};
  }

  // Responses with values by this critic, and with returns some way from them.
  std::vector<Sample> rollout() {
    std::vector<Sample> samples = with_values(random_samples());
    RandomStream random(9, RandomPurpose::kTest, 0, 0);
    for (Sample& s : samples)
      for (const float value : s.values)
        s.returns.push_back(value + static_cast<float>(random.uniform()) + 0.2f);
    return samples;
  }

  // By the critic as it is now.
  std::vector<Sample> with_values(std::vector<Sample> samples) {
    for (Sample& s : samples) s.values.clear();
    SampleSet set = spread(samples);
    trainer().set_values(set);
    return all_samples(set);
  }
  CriticReport update(const std::vector<Sample>& samples, int mini_batches = 1, int epochs = 1) {
    SampleSet set = spread(samples);
    return trainer(mini_batches, epochs).update(set);
  }

  CriticTrainerOptions options;
};

// As if an earlier critic had said the values, and with tokens without a loss.
std::vector<Sample> stale(std::vector<Sample> samples) {
  for (Sample& s : samples)
    for (std::size_t t = 0; t < s.values.size(); ++t)
      s.values[t] += 0.3f * static_cast<float>(static_cast<int>(t % 5) - 2);
  mask_some(samples);
  return samples;
}

std::vector<std::vector<float>> values_of(const std::vector<Sample>& samples) {
  std::vector<std::vector<float>> values;
  for (const Sample& s : samples) values.push_back(s.values);
  return values;
}

}  // namespace

TEST_CASE("values have the same bits for all micro-batches, replicas and shards") {
  const Groups g;
  const auto expected = values_of(CriticModel(g.self, g.self, 2048).rollout());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(expected[i].size() == 1 + i * 7 % 20);
  CHECK(values_of(CriticModel(g.world, g.self, 40).rollout()) == expected);
  CHECK(values_of(CriticModel(g.self, g.world, 100).rollout()) == expected);
}

TEST_CASE("no update depends on micro-batches and replicas beyond rounding") {
  const Groups g;
  AdamWOptions unclipped;  // or aggregations would differ by a factor only, which clipping removes
  unclipped.clip_norm = 0.0;
  const auto samples = stale(CriticModel(g.self, g.self, 2048).rollout());
  std::vector<std::vector<float>> gradients;
  for (const auto& [name, how] : named_aggregations())
    for (const double clip : {0.0, 0.2}) {
      INFO(name << " clip " << clip);
      CriticModel one(g.self, g.self, 2048, unclipped), many(g.world, g.self, 40, unclipped);
      for (CriticModel* critic : {&one, &many}) {
        critic->options = {clip, how, 16.0, {}};
      }
      const CriticReport whole = one.update(samples), parts = many.update(samples);
      gradients.push_back(one.gradient());
      CHECK(distance(gradients.back(), many.gradient()) < 1e-5);
      CHECK(whole.loss > 0.0);
      CHECK(relative(whole.loss, parts.loss) < 1e-5);
      CHECK(relative(whole.value_mean, parts.value_mean) < 1e-5);
      CHECK(whole.clip_fraction == parts.clip_fraction);
      CHECK((whole.clip_fraction > 0.0) == (clip > 0.0));
      CHECK(relative(whole.grad_norm, parts.grad_norm) < 1e-5);
      CriticModel again(g.world, g.self, 40, unclipped);  // the same split: the same bits
      again.options = many.options;
      again.update(samples);
      CHECK(again.weights() == many.weights());
    }
  for (std::size_t i = 1; i < gradients.size(); ++i)  // each is a gradient of its own
    CHECK(distance(gradients[i - 1], gradients[i]) > 1e-3);
}

TEST_CASE(
    "before the first step the values are those of the rollout, and the loss is that of them") {
  const Groups g;
  CriticModel critic(g.world, g.self, 64);
  const auto samples = critic.rollout();
  ValueSums expected;
  StepTotals totals;
  for (const Sample& s : samples) totals.add(s.loss_tokens());
  for (const Sample& s : samples)
    for (std::size_t t = 0; t < s.response.size(); ++t)
      add_value_loss(0.5, {s.values[t], s.values[t], s.returns[t]},
                     1.0 / static_cast<double>(totals.tokens), expected);
  const CriticReport report = critic.update(samples);
  CHECK(report.steps == 1);
  CHECK(report.clip_fraction == 0.0);
  CHECK(relative(expected.loss, report.loss) < 1e-12);
  CHECK(relative(expected.value / expected.tokens, report.value_mean) < 1e-12);
}

TEST_CASE("a critic learns the returns") {
  const Groups g;
  CriticModel critic(g.world, g.self, 128);
  critic.options.clip = 0.0;
  auto samples = critic.rollout();
  for (Sample& s : samples)  // that can be told from the tokens before
    for (std::size_t t = 0; t < s.returns.size(); ++t)
      s.returns[t] = static_cast<float>(s.id.prompt) - 0.1f * static_cast<float>(t);
  const double before = critic.update(samples).loss;
  const CriticReport report = critic.update(samples, 2, 20);
  CHECK(report.steps == 40);
  const double after = critic.update(samples).loss;
  CHECK(before > 0.5);
  CHECK(after < 0.05 * before);
  CHECK(explained_variance(SampleSet(critic.with_values(samples))) > 0.9);
}

TEST_CASE("tokens without a loss change nothing, and without any there is no step") {
  const Groups g;
  CriticModel with(g.world, g.self, 128), without(g.world, g.self, 128);
  auto samples = with.rollout();
  for (Sample& s : samples)
    if (s.id.sample == 1) s.mask.assign(s.response.size(), 0);
  auto left = samples;
  std::erase_if(left, [](const Sample& s) { return s.id.sample == 1; });
  with.update(samples);
  without.update(left);
  CHECK(distance(with.gradient(), without.gradient()) < 1e-5);
  for (Sample& s : samples) s.mask.assign(s.response.size(), 0);
  const auto before = with.weights();
  const CriticReport none = with.update(samples, 2, 1);
  CHECK(none.steps == 0);
  CHECK(none.empty == 2);
  CHECK(std::isfinite(none.loss));
  CHECK(with.weights() == before);
}

TEST_CASE("a gradient that is not finite stops the run and names the critic, or is skipped") {
  const Groups g;
  for (const auto what : {AdamWOptions::OnNonFinite::kStop, AdamWOptions::OnNonFinite::kSkip}) {
    AdamWOptions adamw;
    adamw.on_non_finite = what;
    CriticModel critic(g.world, g.self, 128, adamw);
    auto samples = critic.rollout();
    for (Sample& s : samples) s.returns.front() = std::numeric_limits<float>::infinity();
    const auto before = critic.weights();
    if (what == AdamWOptions::OnNonFinite::kStop)
      CHECK_THROWS_MATCHES(critic.update(samples), Error,
                           MessageMatches(ContainsSubstring("the gradient of 'critic: ")));
    else
      CHECK(critic.update(samples).skipped == 1);
    CHECK(critic.weights() == before);
  }
}

TEST_CASE("values that samples have already are kept") {
  const Groups g;
  CriticModel critic(g.world, g.self, 128);
  const std::vector<Sample> all = critic.rollout();
  std::vector<Sample> some = all;
  for (std::size_t i = 0; i < some.size(); i += 2) some[i].values.clear();
  some[1].values.assign(some[1].values.size(), -7.5f);
  SampleSet set = critic.spread(some);
  critic.trainer().set_values(set);
  auto expected = values_of(all);
  expected[1] = some[1].values;
  CHECK(values_of(all_samples(set)) == expected);
}
