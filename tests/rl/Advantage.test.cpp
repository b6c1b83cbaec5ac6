// SPDX-License-Identifier: Apache-2.0
#include "rl/Advantage.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

using namespace taper;
using Catch::Approx;

namespace {
std::vector<Sample> group(std::int64_t ordinal, std::vector<float> scores) {
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    Sample s;
    s.ordinal = ordinal;
    s.sample = static_cast<int>(i);
    s.score = scores[i];
    samples.push_back(s);
  }
  return samples;
}
}  // namespace

TEST_CASE("advantages are scores centred by group and divided by its unbiased deviation") {
  auto samples = group(3, {1, 0, 0, 1});
  for (auto& s : group(4, {2, 5})) samples.push_back(s);
  set_group_advantages(samples, {});
  const double deviation = std::sqrt(4 * 0.25 / 3);
  CHECK(samples[0].advantage == Approx(0.5 / (deviation + 1e-6)));
  CHECK(samples[1].advantage == Approx(-0.5 / (deviation + 1e-6)));
  CHECK(samples[4].advantage == Approx(-1.5 / (std::sqrt(4.5) + 1e-6)));
  CHECK(samples[5].advantage == Approx(1.5 / (std::sqrt(4.5) + 1e-6)));
}

TEST_CASE("a group of equal scores has no advantage, a group of one keeps its score") {
  auto equal = group(0, {1, 1, 1});
  set_group_advantages(equal, {});
  for (const auto& s : equal) CHECK(s.advantage == 0.0f);
  auto one = group(0, {0.7f});
  set_group_advantages(one, {});
  CHECK(one[0].advantage == Approx(0.7).epsilon(1e-5));
}

TEST_CASE("without division advantages are centred scores") {
  auto samples = group(0, {3, 1});
  set_group_advantages(samples, {.divide_by_std = false});
  CHECK(samples[0].advantage == Approx(1.0));
  CHECK(samples[1].advantage == Approx(-1.0));
}
