// SPDX-License-Identifier: Apache-2.0
#include "reward/Shaping.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
#include <vector>

using namespace taper;
using Catch::Matchers::WithinAbs;

TEST_CASE("markers must stand once and in order") {
  FormatOptions o{{"<think>", "</think>", "<answer>", "</answer>"}, true};
  const auto score = [&](const char* text) { return score_format(o, text); };
  CHECK(score("<think>a</think><answer>b</answer>") == 1);
  CHECK(score(" \n<think></think>\n<answer>b</answer>\n") == 1);
  CHECK(score("<think>a</think><answer>b") == 0);
  CHECK(score("<answer>b</answer><think>a</think>") == 0);
  CHECK(score("<think><think>a</think><answer>b</answer>") == 0);
  CHECK(score("so <think>a</think><answer>b</answer>") == 0);
  CHECK(score("<think>a</think><answer>b</answer> or c") == 0);
  CHECK(score("") == 0);
  o.enclosing = false;
  CHECK(score("so <think>a</think> is <answer>b</answer> or c") == 1);
  CHECK(score("</think><think><answer></answer>") == 0);
  o.markers = {"</think>"};
  CHECK(score("a</think>b") == 1);
  CHECK(score("a") == 0);
  o = {{"aa"}, false};
  CHECK(score("aaa") == 0);  // twice, overlapping
}

TEST_CASE("length is punished above the target") {
  const LengthOptions o{10, 0.25, -1.0};
  CHECK(length_penalty(o, 0) == 0);
  CHECK(length_penalty(o, 10) == 0);
  CHECK(!std::signbit(length_penalty(o, 10)));
  CHECK(length_penalty(o, 11) == -0.25);
  CHECK(length_penalty(o, 14) == -1.0);
  CHECK(length_penalty(o, 1000) == -1.0);
}

TEST_CASE("overlong responses are punished as DAPO does") {
  const OverlongOptions o{100, 40, 2.0};
  CHECK(overlong_penalty(o, 60) == 0);
  CHECK_THAT(overlong_penalty(o, 70), WithinAbs(-0.5, 1e-15));
  CHECK(overlong_penalty(o, 100) == -2.0);
  CHECK(overlong_penalty(o, 120) == -3.0);
}

TEST_CASE("repeated n-grams are punished by their share") {
  const auto penalty = [](int n, const std::vector<std::int32_t>& tokens) {
    return repetition_penalty({n, 1.0}, tokens);
  };
  CHECK(penalty(2, {1, 2, 3, 4}) == 0);
  CHECK_THAT(penalty(2, {1, 2, 1, 2}), WithinAbs(-1.0 / 3, 1e-15));  // 12, 21, 12
  CHECK_THAT(penalty(1, {5, 5, 5, 5}), WithinAbs(-0.75, 1e-15));
  CHECK(penalty(5, {5, 5, 5, 5}) == 0);
  CHECK(penalty(1, {}) == 0);
  CHECK_THAT(repetition_penalty({1, 2.0}, std::vector<std::int32_t>{5, 5}), WithinAbs(-1.0, 1e-15));
}
