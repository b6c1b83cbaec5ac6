// SPDX-License-Identifier: Apache-2.0
#include "rl/DraftTrainer.hpp"

#include <catch2/catch_test_macros.hpp>

#include "rl/LearningModel.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// Parallel over `dp`, or over `tp`.
struct TestDraft : LearningModel {
  TestDraft(const Group& dp, const Group& tp, int max_rows) : LearningModel({dp, tp, max_rows}) {}

  DraftReport update(const std::vector<Sample>& samples, int steps = 1) {
    SampleSet set = spread(samples);
    return DraftTrainer(update_options(steps, 1), trained()).update(set);
  }
  // By forward passes.
  double loss(const std::vector<Sample>& samples) {
    std::vector<std::span<const std::int32_t>> prompts, responses;
    for (const Sample& s : samples) {
      prompts.emplace_back(s.prompt);
      responses.emplace_back(s.response);
    }
    const auto log_probs = response_log_probs(context(), prompts, responses);
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < samples.size(); ++i)
      for (std::size_t t = 0; t < samples[i].response.size(); ++t) {
        if (!samples[i].carries_loss(t)) continue;
        sum -= log_probs[i][t];
        count += 1;
      }
    return sum / count;
  }
};

}  // namespace

TEST_CASE("the loss is the mean cross entropy of what carries a loss, however it is shared out") {
  const Groups g;
  TestDraft one(g.self, g.self, 2048), parts(g.world, g.self, 40), shards(g.self, g.world, 100);
  std::vector<Sample> samples = one.random_samples();
  mask_some(samples);
  const double expected = one.loss(samples);
  const DraftReport whole = one.update(samples);
  CHECK(whole.steps == 1);
  CHECK(relative(expected, whole.loss) < 1e-6);
  for (TestDraft* other : {&parts, &shards}) {
    const DraftReport report = other->update(samples);
    CHECK(relative(whole.loss, report.loss) < 1e-5);
    CHECK(relative(whole.grad_norm, report.grad_norm) < 1e-5);
  }
  CHECK(distance(one.gradient(), parts.gradient()) < 1e-5);
}

TEST_CASE("a draft model learns what it is shown") {
  const Groups g;
  TestDraft draft(g.world, g.self, 64);
  const auto samples = draft.random_samples();
  const double before = draft.loss(samples);
  double last = draft.update(samples, 2).loss;
  for (int i = 0; i < 5; ++i) {
    const double loss = draft.update(samples, 2).loss;
    CHECK(loss < last);
    last = loss;
  }
  CHECK(draft.loss(samples) < 0.9 * before);
}
