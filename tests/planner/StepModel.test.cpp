// SPDX-License-Identifier: Apache-2.0
#include "planner/StepModel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "base/Error.hpp"
#include "support/synthetic_profile.hpp"

using namespace taper;

namespace {

StepSample decode(int sequences, std::int64_t mean_context, std::int64_t ns) {
  return {1, PairClass::kSameNode, sequences, sequences, sequences * mean_context, ns, 0, 1};
}

void observe_one(StepModel& model, int tp, int sequences, int ratio) {
  const std::vector<StepModel::Speed> one{{tp, sequences, ratio}};
  model.observe(one);
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

TEST_CASE("many steps take the sum of their times, also across samples") {
  const std::vector<StepSample> samples{decode(1, 10, 1000), decode(1, 20, 5000),
                                        decode(1, 500, 5000), decode(1, 520, 2000),
                                        decode(1000, 10, 90'000)};
  const StepCurve curve(samples);
  for (const int sequences : {1, 3}) {
    std::int64_t sum = 0, context = sequences * std::int64_t{5};
    for (int step = 0; step < 900; ++step, context += sequences)
      sum += curve.token_ns(sequences, context);
    const std::int64_t at_once = curve.tokens_ns(sequences, sequences * std::int64_t{5}, 900);
    CHECK(std::abs(at_once - sum) <= sum / 500);
    // In the middle of all of them it is another time.
    CHECK(std::abs(900 * curve.token_ns(sequences, sequences * 455) - sum) > sum / 10);
  }
  CHECK(curve.tokens_ns(1, 7, 1) == curve.token_ns(1, 7));
  CHECK(curve.tokens_ns(1, 7, 0) == 0);
  CHECK(curve.tokens_ns(600, 6000, 2) == 2 * curve.token_ns(600, 6600));  // more than the table
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

TEST_CASE("guesses add to a step what was measured, or as much as sequences would") {
  const std::vector<StepSample> samples{decode(1, 100, 1000), decode(1, 300, 1000),
                                        decode(16, 100, 4000)};
  const auto verify = [](int sequences, int drafted, std::int64_t ns) {
    StepSample s = decode(sequences, 100, ns);
    s.new_tokens += drafted;
    return s;
  };
  const StepCurve guessed(samples);
  CHECK(guessed.verify_ns(1, 15, 100) == 3000);
  CHECK(guessed.verify_ns(4, 0, 400) == 0);
  const StepCurve curve(samples,
                        std::vector{verify(1, 2, 1200), verify(1, 6, 2200), verify(16, 16, 5600)});
  CHECK(curve.verify_ns(1, 1, 100) == 100);
  CHECK(curve.verify_ns(1, 2, 100) == 200);
  CHECK(curve.verify_ns(1, 4, 100) == 700);
  CHECK(curve.verify_ns(1, 8, 100) == 1700);                     // beyond
  CHECK(curve.verify_ns(16, 8, 1600) == 800);                    // half as many
  CHECK(curve.verify_ns(100, 16, 10000) == 1600);                // as the nearest batch
  CHECK(curve.verify_ns(6, 6, 600) == 1200 - (1200 - 600) / 3);  // a third of the way
}

TEST_CASE("drafts make a token as cheap as the best length of them does, and never dearer") {
  const std::vector<StepSample> samples{decode(1, 100, 1000), decode(1, 300, 1000),
                                        decode(16, 100, 4000)};
  StepCurve curve(samples);
  CHECK(curve.token_ns(1, 200) == curve.decode_ns(1, 200));
  DraftTable table;
  DraftShares shares;
  curve.set_drafts(table);
  CHECK(curve.token_ns(16, 1600) == 4000);
  // All draft one token, half of which are right, and a second, which never is.
  shares.drafted[0] = shares.drafted[1] = 255;
  shares.accepted[0] = 127;
  table.observe(1, shares);
  curve.set_drafts(table);
  const auto expected = static_cast<double>(1200) / (1 + 127.0 / 255);  // a row takes 200 ns
  CHECK(std::abs(static_cast<double>(curve.token_ns(1, 100)) - expected) < 0.01 * expected);
  CHECK(curve.token_ns(1, 300) < curve.decode_ns(1, 300));
  // With a model that takes half of a step's time for both guesses, a quarter for the first one.
  shares.model = kRatioOne / 2;
  DraftTable dearer;
  dearer.observe(1, shares);
  curve.set_drafts(dearer);
  CHECK(curve.token_ns(1, 100) > 1000 * 99 / 100);
  shares.accepted[0] = 255;
  DraftTable better;
  better.observe(1, shares);
  curve.set_drafts(better);
  CHECK(std::abs(static_cast<double>(curve.token_ns(1, 100)) - 1.25 * 1200 / 2) < 0.01 * 750);
  shares = {shares.drafted, {127}};
  curve.set_drafts(table);
  // The more are right, the cheaper; none, and they are not made.
  std::int64_t before = curve.token_ns(1, 100);
  for (const int right : {150, 200, 255}) {
    DraftTable more;
    shares.accepted[0] = static_cast<std::uint8_t>(right);
    more.observe(1, shares);
    curve.set_drafts(more);
    CHECK(curve.token_ns(1, 100) < before);
    before = curve.token_ns(1, 100);
  }
  DraftTable none;
  shares.accepted[0] = 0;
  none.observe(1, shares);
  curve.set_drafts(none);
  CHECK(curve.token_ns(1, 100) == 1000);
}

TEST_CASE("a described machine is met within four percent between its samples") {
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
  for (int i = 0; i < 600; ++i) observe_one(model, 2, 8, 1024 * 1126 / model.factor(2, 8));
  CHECK(std::abs(model.factor(2, 8) - 1126) <= 3);
  CHECK(std::abs(time() * 1024 / model.factor(2, 8) - before) < 200);
  for (int i = 0; i < 600; ++i) observe_one(model, 2, 8, 65535);
  CHECK(model.factor(2, 8) == 1024 * 4 / 3);
  StepModel copy(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  copy.load(model.save());
  CHECK(copy.factor(2, 8) == model.factor(2, 8));
  CHECK_THROWS_AS(copy.load(std::string(8, 0)), Error);
  // Damaged factors, degrees and numbers of sequences change nothing.
  const std::string whole = model.save();
  for (const auto& [word, value] : {std::pair{3, 0}, {4, kLengthBuckets}, {4, -1}, {5, 1}}) {
    std::string damaged = whole;
    const std::int64_t wrong = value;
    std::memcpy(damaged.data() + 8 * word, &wrong, sizeof wrong);
    CHECK_THROWS_AS(copy.load(damaged), Error);
    CHECK(copy.save() == whole);
  }
}

TEST_CASE("one disturbed replica does not make all steps look slow") {
  StepModel model(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  std::vector<StepModel::Speed> replicas(60, {1, 12, kRatioOne});
  replicas.push_back({1, 1, 2 * kRatioOne});
  replicas.push_back({2, 0, 3 * kRatioOne});  // has nothing to do
  replicas.push_back({2, 7, 0});              // has measured nothing
  for (int i = 0; i < 50; ++i) model.observe(replicas);
  CHECK(model.factor(1, 12) == kRatioOne);
  CHECK(model.factor(2, 7) == kRatioOne);
  CHECK(model.factor(1, 1) > kRatioOne * 12 / 10);
}

TEST_CASE("a slow machine makes no steps look fast of which nothing was seen") {
  StepModel model(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  // All steps take 10 % longer than the profile says; those of one kind are seen.
  for (int generation = 0; generation < 80; ++generation) {
    model.begin();
    for (int i = 0; i < 30; ++i) observe_one(model, 1, 8, 1024 * 1126 / model.factor(1, 8));
    model.learn(1100, 1000 * model.factor(1, 8) / 1024);
  }
  model.begin();
  CHECK(std::abs(model.factor(1, 8) - 1126) < 12);
  CHECK(std::abs(model.factor(2, 40) - 1126) < 12);
}

TEST_CASE("what slows one degree slows them all, at first; a lasting difference is its own") {
  StepModel model(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  const auto observe = [&](int tp, int truth) {
    observe_one(model, tp, 8, 1024 * truth / model.factor(tp, 8));
  };
  for (int i = 0; i < 60; ++i) observe(2, 1126);
  CHECK(std::abs(model.factor(2, 8) - 1126) < 12);
  CHECK(model.factor(1, 8) > 1024 + 60);
  for (int i = 0; i < 4000; ++i) observe(i % 2 + 1, i % 2 == 0 ? 1024 : 1126);
  CHECK(std::abs(model.factor(1, 8) - 1024) < 12);
  CHECK(std::abs(model.factor(2, 8) - 1126) < 12);
}

TEST_CASE("what steps of few sequences have of their own says nothing of many") {
  StepModel model(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  // A replica alone is faster than beside others at work; a lasting difference.
  for (int i = 0; i < 4000; ++i) {
    const int sequences = i % 2 == 0 ? 1 : 40, truth = i % 2 == 0 ? 922 : 1024;
    observe_one(model, 1, sequences, 1024 * truth / model.factor(1, sequences));
  }
  CHECK(model.factor(1, 1) < 1024 * 92 / 100);
  CHECK(model.factor(1, 40) > 1024 * 98 / 100);
  const StepCurve& curve = model.curve(1, PairClass::kSameNode);
  const StepModel plain(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  const auto ratio = [&](int sequences) {
    return static_cast<double>(curve.decode_ns(sequences, 100 * sequences)) /
           static_cast<double>(
               plain.curve(1, PairClass::kSameNode).decode_ns(sequences, 100 * sequences));
  };
  CHECK(std::abs(ratio(1) - 0.9) < 0.02);
  CHECK(std::abs(ratio(33) - 1.0) < 0.02);  // of the same power of two as 40
  // Whatever else was seen, nothing is known of the other degree.
  CHECK(model.factor(2, 1) == model.factor(2, 40));
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
  for (int i = 0; i < 200; ++i) observe_one(model, 1, 8, 1024 * 1024 / model.factor(1, 8));
  CHECK(model.factor(2, 8) < 1024 * 102 / 100);
  StepModel copy(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  copy.load(model.save());
  copy.begin();
  CHECK(copy.scale() == model.scale());
  CHECK(std::abs(copy.factor(2, 8) - copy.scale()) <= 1);
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
