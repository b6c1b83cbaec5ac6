// SPDX-License-Identifier: Apache-2.0
#include "planner/StepModel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "base/Error.hpp"
#include "support/synthetic_profile.hpp"

using namespace taper;

namespace {

StepSample decode(int sequences, std::int64_t mean_context, std::int64_t ns) {
  return {1, PairClass::kSameNode, sequences, sequences, sequences * mean_context, ns, 0, 1};
}

}  // namespace

TEST_CASE("times are exact at samples and linear between and beyond them") {
  const std::vector<StepSample> samples{decode(1, 100, 1000), decode(1, 300, 3000),
                                        decode(4, 100, 4000), decode(4, 300, 10000)};
  const StepCurve curve(samples);
  for (const StepSample& s : samples) CHECK(curve.decode_ns(s.sequences, s.context) == s.time_ns);
  CHECK(curve.decode_ns(1, 200) == 2000);
  CHECK(curve.decode_ns(1, 400) == 4000);      // beyond the longest context
  CHECK(curve.decode_ns(2, 2 * 100) == 2000);  // between batches
  CHECK(curve.decode_ns(7, 7 * 100) == 7000);  // beyond the largest batch
  CHECK(curve.decode_ns(1000, 1000 * 100) == 1'000'000);
  CHECK(curve.decode_ns(0, 0) == 0);
}

TEST_CASE("noise cannot make extrapolated times fall") {
  const StepCurve curve(std::vector{decode(1, 100, 1000), decode(1, 300, 900)});
  CHECK(curve.decode_ns(1, 100'000) == 900);
}

TEST_CASE("prompt rows add to a step") {
  std::vector<StepSample> samples{decode(1, 100, 1000), decode(1, 300, 1000)};
  samples.push_back({1, PairClass::kSameNode, 65, 1, 200, 7000, 0, 1});
  const StepCurve curve(samples);
  CHECK(curve.step_ns(65, 1, 200) == 7000);
  CHECK(curve.prefill_ns(32, 200) == 3000);
  CHECK(curve.prefill_ns(128, 200) == 12000);
  CHECK(curve.prefill_ns(0, 200) == 0);
  samples.push_back({1, PairClass::kSameNode, 65, 1, 300, 9000, 0, 1});
  const StepCurve longer(samples);
  CHECK(longer.prefill_ns(64, 200) == 6000);
  CHECK(longer.prefill_ns(64, 250) == 7000);  // over more context
  CHECK(longer.prefill_ns(32, 300) == 4000);
}

TEST_CASE("a described machine is met within a percent between its samples") {
  const test::Machine machine = test::small_model_tcp();
  const StepModel model(test::synthetic_profile(machine, {1, 2}));
  for (const int tp : {1, 2})
    for (const int batch : {1, 3, 24, 100})
      for (const int context : {40, 100, 700, 3000}) {
        const double truth = test::step_time(machine, tp, batch, double(batch) * context);
        const auto guess = static_cast<double>(
            model.curve(tp, PairClass::kSameNode).decode_ns(batch, std::int64_t{batch} * context));
        CAPTURE(tp, batch, context);
        CHECK(std::abs(guess / truth - 1) < 0.04);
      }
}

TEST_CASE("the learned factor follows the measured speed within bounds") {
  StepModel model(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  const auto time = [&] { return model.curve(2, PairClass::kSameNode).decode_ns(8, 800); };
  const auto before = time();
  // The leader divides by the corrected prediction, so the ratio falls to 1 as the factor rises.
  for (int i = 0; i < 600; ++i) model.observe(2, 1024 * 1126 / model.factor(2));
  CHECK(std::abs(model.factor(2) - 1126) <= 3);
  CHECK(std::abs(time() * 1024 / model.factor(2) - before) < 200);
  for (int i = 0; i < 600; ++i) model.observe(2, 65535);
  CHECK(model.factor(2) == 1024 * 4 / 3);
  StepModel copy(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  copy.load(model.save());
  CHECK(copy.factor(2) == model.factor(2));
  CHECK_THROWS_AS(copy.load(std::string(8, 0)), Error);
}

TEST_CASE("what slows one degree slows them all, at first; a lasting difference is its own") {
  StepModel model(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  const auto observe = [&](int tp, int truth) {
    model.observe(tp, 1024 * truth / model.factor(tp));
  };
  for (int i = 0; i < 60; ++i) observe(2, 1126);
  CHECK(std::abs(model.factor(2) - 1126) < 12);
  CHECK(model.factor(1) > 1024 + 60);
  for (int i = 0; i < 4000; ++i) observe(i % 2 + 1, i % 2 == 0 ? 1024 : 1126);
  CHECK(std::abs(model.factor(1) - 1024) < 12);
  CHECK(std::abs(model.factor(2) - 1126) < 12);
}

TEST_CASE("whole generations teach the scale, and each begins with it") {
  StepModel model(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  // Generations that take 10 % longer than the profile says, measured against what was expected.
  const auto learn = [&] { model.learn(1100, 1000 * model.scale() / 1024); };
  learn();
  CHECK(std::abs(model.scale() - 1024 * 105 / 100) <= 2);  // half way: the profile counts as one
  for (int i = 0; i < 30; ++i) learn();
  CHECK(std::abs(model.scale() - 1024 * 110 / 100) <= 3);
  // What the steps of one generation say ends with it.
  for (int i = 0; i < 200; ++i) model.observe(1, 1024 * 1024 / model.factor(1));
  CHECK(model.factor(2) < 1024 * 102 / 100);
  StepModel copy(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  copy.load(model.save());
  copy.begin();
  CHECK(copy.scale() == model.scale());
  CHECK(std::abs(copy.factor(2) - copy.scale()) <= 1);
  for (int i = 0; i < 30; ++i) model.learn(1000, 10);
  CHECK(model.scale() == 1024 * 4 / 3);
  const int before = model.scale();
  model.learn(1000, 0);  // nothing was generated
  CHECK(model.scale() == before);
}

TEST_CASE("a missing degree is refused, a missing pair class is not") {
  const StepModel model(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  CHECK_THROWS_AS(model.curve(4, PairClass::kSameNode), Error);
  CHECK(&model.curve(2, PairClass::kOtherNode) == &model.curve(2, PairClass::kSameNode));
}
