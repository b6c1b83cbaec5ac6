// SPDX-License-Identifier: Apache-2.0
#include "planner/LengthModel.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "base/Error.hpp"
#include "simulate/LengthLaw.hpp"

using namespace taper;

namespace {

LengthModel learned(const std::vector<int>& lengths, int limit) {
  LengthModel model(3);
  model.begin(limit);
  model.learn(lengths, {});
  return model;
}

// Quantile of the draws of a response that has `now` tokens.
int quantile(const LengthModel& model, int now, int percent) {
  return model.draw(now, static_cast<std::uint32_t>((100 - percent) * 42949672.0));
}

}  // namespace

TEST_CASE("drawn lengths have the learned distribution, also given what is there") {
  const int limit = 2048;
  std::vector<int> lengths = draw_lengths(LengthLaw::kLogNormal, 1, 0, 4000, limit);
  std::sort(lengths.begin(), lengths.end());
  const LengthModel model = learned(lengths, limit);
  for (const int percent : {10, 25, 50, 75, 90}) {
    const int truth = lengths[lengths.size() * percent / 100];
    CAPTURE(percent, truth);
    CHECK(std::abs(quantile(model, 0, percent) - truth) < truth / 20 + 2);
  }
  const int now = 600;
  std::vector<int> rest(std::upper_bound(lengths.begin(), lengths.end(), now), lengths.end());
  const int median = rest[rest.size() / 2];
  CHECK(std::abs(quantile(model, now, 50) - median) < median / 12);
}

TEST_CASE("draws stay above what is there and within the limit") {
  const LengthModel model = learned(draw_lengths(LengthLaw::kHeavyTail, 1, 0, 500, 1000), 1000);
  for (const int now : {0, 1, 63, 64, 500, 998, 999})
    for (const std::uint32_t u : {0u, 1u, 1u << 31, 0xffffffffu}) {
      CAPTURE(now, u);
      CHECK(model.draw(now, u) > now);
      CHECK(model.draw(now, u) <= 1000);
    }
  CHECK(model.draw(999, 7) == 1000);
}

TEST_CASE("responses at the limit are censored: a higher limit lets them grow") {
  LengthModel model = learned(std::vector<int>(1000, 512), 512);
  CHECK(quantile(model, 0, 1) == 512);
  model.begin(4096);
  CHECK(quantile(model, 0, 1) >= 512);
  CHECK(quantile(model, 0, 90) > 1000);
}

TEST_CASE("old generations fade") {
  LengthModel model(1);
  model.begin(4096);
  for (int i = 0; i < 4; ++i) model.learn(std::vector<int>(200, 100), {});
  CHECK(std::abs(quantile(model, 0, 50) - 100) <= 2);
  for (int i = 0; i < 4; ++i) model.learn(std::vector<int>(200, 400), {});
  CHECK(std::abs(quantile(model, 0, 50) - 400) <= 8);
}

TEST_CASE("what ends within the generation moves the curve") {
  LengthModel model = learned(draw_lengths(LengthLaw::kLogNormal, 1, 0, 2000, 4096), 4096);
  const int before = quantile(model, 600, 50);
  const std::int64_t expected = 100 * model.expected_ends(300, 600);
  CHECK(expected > 20 * 65536);
  model.observe(expected, static_cast<int>(expected / 65536), 1024);
  CHECK(std::abs(quantile(model, 600, 50) - before) < before / 20);
  model.observe(expected, static_cast<int>(expected / 65536) / 3, 1024);
  CHECK(model.scale() < 900);
  CHECK(quantile(model, 600, 50) > before);
  model.begin(4096);
  CHECK(model.scale() == 1024);
}

TEST_CASE("a saved model draws alike") {
  const LengthModel model = learned(draw_lengths(LengthLaw::kBimodal, 1, 0, 300, 2000), 2000);
  LengthModel copy(3);
  copy.load(model.save());
  for (std::uint32_t u = 0; u < 4'000'000'000u; u += 99'999'999u)
    CHECK(copy.draw(37, u) == model.draw(37, u));
  CHECK_THROWS_AS(copy.load(std::string(16, 0)), Error);
}
