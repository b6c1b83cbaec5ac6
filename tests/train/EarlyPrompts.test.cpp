// SPDX-License-Identifier: Apache-2.0
#include "train/EarlyPrompts.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

namespace {

Sample sample(std::int64_t prompt, int number) {
  Sample s;
  s.id = {prompt, number};
  s.response = {static_cast<std::int32_t>(10 * prompt + number)};
  return s;
}

const std::vector<SampleFigure> kFigures{SampleFigure::of(&Sample::ref_log_probs),
                                         SampleFigure::of(&Sample::values)};

}  // namespace

TEST_CASE("a prompt is complete when it has all samples with all figures, in whatever order") {
  EarlyPrompts prompts(2, kFigures);
  prompts.add({3, 1}, 1, {0.25f});  // before its sample
  prompts.add(sample(3, 1));
  prompts.add(sample(3, 0));
  prompts.add({3, 0}, 0, {-1.0f});
  prompts.add({3, 0}, 1, {0.5f});
  CHECK_FALSE(prompts.has_complete());
  prompts.add(sample(1, 0));
  prompts.add({3, 1}, 0, {-2.0f});
  REQUIRE(prompts.has_complete());
  const std::vector<Sample> three = prompts.take();
  CHECK_FALSE(prompts.has_complete());
  REQUIRE(three.size() == 2);
  for (int k = 0; k < 2; ++k) {
    CHECK(three[k].id == ResponseId{3, k});
    CHECK(three[k].response == std::vector<std::int32_t>{30 + k});
    CHECK(three[k].ref_log_probs == std::vector{k == 0 ? -1.0f : -2.0f});
    CHECK(three[k].values == std::vector{k == 0 ? 0.5f : 0.25f});
  }
}

TEST_CASE("prompts are learned from in the order in which they were complete") {
  EarlyPrompts prompts(1, {});
  for (const std::int64_t prompt : {5, 2, 4}) prompts.add(sample(prompt, 0));
  for (const std::int64_t prompt : {5, 2, 4}) CHECK(prompts.take().front().id.prompt == prompt);
  prompts.add(sample(7, 0));
  prompts.clear();
  CHECK_FALSE(prompts.has_complete());
}
