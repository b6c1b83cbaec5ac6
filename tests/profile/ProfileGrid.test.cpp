// SPDX-License-Identifier: Apache-2.0
#include "profile/ProfileGrid.hpp"

#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <set>
#include <utility>

using namespace taper;

namespace {

GridLimits limits(int max_batch, int max_tokens, int positions) {
  return {max_batch, max_tokens, [=](int tokens, int batch) {
            return std::int64_t{positions - (tokens - batch)} * batch + (tokens - batch);
          }};
}

StepSample sample(int tokens, int batch, std::int64_t context, std::int64_t ns = 1000) {
  StepSample s;
  s.new_tokens = tokens;
  s.sequences = batch;
  s.context = context;
  s.time_ns = ns;
  s.repeats = 1;
  return s;
}

}  // namespace

TEST_CASE("a point's time is the median of its visits' means, its spread that of all steps") {
  ProfilePoint point;
  point.tp = 2;
  point.pair = PairClass::kOtherNode;
  point.shape = {4, 4, 400};
  point.visits = {{10, 12, 11}, {20, 22, 21}, {100, 13, 12}};
  const StepSample s = summarize(point);
  CHECK(s.tp == 2);
  CHECK(s.pair == PairClass::kOtherNode);
  CHECK(s.new_tokens == 4);
  CHECK(s.sequences == 4);
  CHECK(s.context == 400);
  CHECK(s.time_ns == 21);         // of 11, 21 and (3 x 13 + 13 + 12) / 3 = 21
  CHECK(s.spread_ns == 21 - 12);  // of 10 11 12 12 13 20 21 22 100
  CHECK(s.repeats == 9);
  // Even visits: 11 and 21 (the lower one is taken), odd: 21.
  CHECK(repeat_noise(point).value() == Catch::Approx(10.0 / 21.0));
  point.visits.resize(1);
  CHECK(!repeat_noise(point));
}

TEST_CASE("quantiles are nearest ranks") {
  CHECK(quantile({4, 1, 3, 2}, 0.5) == 2);
  CHECK(quantile({4, 1, 3, 2}, 0.9) == 4);
  CHECK(quantile({4, 1, 3, 2}, 1.0) == 4);
  CHECK(quantile({}, 0.5) == 0);
}

TEST_CASE("the coarse grid spans the limits and holds nothing beyond them") {
  for (const int max_batch : {1, 2, 3, 5, 64, 100})
    for (const int max_tokens : {1, 4, 256})
      for (const int positions : {40, 2048}) {
        if (max_tokens < max_batch) continue;
        INFO(max_batch << " sequences, " << max_tokens << " tokens, " << positions);
        const GridLimits l = limits(max_batch, max_tokens, positions);
        const auto grid = coarse_grid(l);
        int largest_batch = 0, largest_tokens = 0, verified = 0;
        for (const StepShape& s : grid) {
          CHECK(s.batch >= 1);
          CHECK(s.tokens >= s.batch);
          if (s.verifies()) {
            CHECK(s.tokens == s.batch * (1 + s.drafted));
            CHECK(s.context >= s.batch);
            CHECK(s.context <= l.max_context(s.batch + s.drafted, s.batch));
            ++verified;
          } else {
            CHECK(s.context >= s.tokens);
            CHECK(s.context <= l.max_context(s.tokens, s.batch));
          }
          CHECK(std::count(grid.begin(), grid.end(), s) == 1);
          if (s.decodes()) largest_batch = std::max(largest_batch, s.batch);
          largest_tokens = std::max(largest_tokens, s.tokens);
        }
        CHECK(largest_batch == max_batch);
        CHECK(largest_tokens <= max_tokens);
        // Chunks that leave no room for anything else in a short context are not measured.
        if (positions > 2 * max_tokens) CHECK(largest_tokens == max_tokens);
        CHECK(grid.size() <= 40);
        if (max_tokens == 256) CHECK(verified == (max_batch >= 16 ? 7 : max_batch >= 4 ? 5 : 3));
      }
}

namespace {

// A decode grid of 3 x 3 and prompt chunks, with times linear in all of it, shifted by `extra`
// if there are 8 sequences.
std::vector<StepSample> some_samples(std::int64_t extra = 0) {
  std::vector<StepSample> samples;
  for (const int batch : {1, 8, 64})
    for (const int each : {64, 256, 1024})
      samples.push_back(sample(batch, batch, batch * each,
                               100000 + 1000 * batch + 10 * each + (batch == 8 ? extra : 0)));
  for (const int tokens : {17, 65, 257})
    samples.push_back(sample(tokens, 1, 300, 100000 + 1000 + 3000 + 500 * (tokens - 1)));
  return samples;
}

}  // namespace

TEST_CASE("samples between others are predicted without themselves, those at the ends are not") {
  std::set<std::pair<std::size_t, GridAxis>> judged;
  for (const PointError& e : interpolation_errors(some_samples())) {
    CHECK(e.error < 0.001);
    judged.insert({e.point, e.axis});
  }
  CHECK(judged == std::set<std::pair<std::size_t, GridAxis>>{{1, GridAxis::kContext},
                                                             {3, GridAxis::kBatch},
                                                             {4, GridAxis::kContext},
                                                             {4, GridAxis::kBatch},
                                                             {5, GridAxis::kBatch},
                                                             {7, GridAxis::kContext},
                                                             {9, GridAxis::kPrompt},
                                                             {10, GridAxis::kPrompt}});
}

TEST_CASE("a line that is off is seen by the lines around it") {
  double batch_error = 0, context_error = 0;
  for (const PointError& e : interpolation_errors(some_samples(50000))) {
    if (e.axis == GridAxis::kBatch) batch_error = std::max(batch_error, e.error);
    if (e.axis == GridAxis::kContext) context_error = std::max(context_error, e.error);
  }
  CHECK(batch_error > 0.2);
  CHECK(context_error < 0.001);
}

TEST_CASE("refinements lie between a point and its neighbours on the axis") {
  const auto samples = some_samples();
  const GridLimits l = limits(64, 257, 2048);
  const auto contexts = refine(samples, {4, GridAxis::kContext, 1}, l);  // 8 sequences of 256
  REQUIRE(contexts.size() == 2);
  CHECK(contexts[0] == StepShape{8, 8, 8 * 128});
  CHECK(contexts[1] == StepShape{8, 8, 8 * 512});
  const auto lines = refine(samples, {4, GridAxis::kBatch, 1}, l);
  REQUIRE(lines.size() == 6);  // each with several contexts
  for (const StepShape& s : lines) {
    CHECK((s.batch == 3 || s.batch == 23));
    CHECK(s.decodes());
    CHECK(s.context <= l.max_context(s.tokens, s.batch));
  }
  const auto prompts = refine(samples, {10, GridAxis::kPrompt, 1}, l);  // 64 prompt tokens
  std::set<int> tokens;
  for (const StepShape& s : prompts) {
    tokens.insert(s.tokens - s.batch);
    CHECK(s.batch == 1);
  }
  CHECK(tokens == std::set<int>{32, 128});
}

TEST_CASE("neighbours that are near leave no room for refinements") {
  std::vector<StepSample> samples;
  for (const int batch : {4, 5, 6})
    for (const int each : {100, 110, 121}) samples.push_back(sample(batch, batch, batch * each));
  const GridLimits l = limits(64, 256, 2048);
  CHECK(refine(samples, {4, GridAxis::kContext, 1}, l).empty());
  CHECK(refine(samples, {4, GridAxis::kBatch, 1}, l).empty());
}
