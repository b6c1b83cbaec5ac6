// SPDX-License-Identifier: Apache-2.0
#include "rl/Metrics.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>

using namespace taper;

TEST_CASE("figures of values are of the tokens that carry a loss") {
  Sample a, b, masked;
  a.response = {1, 2, 3};
  a.values = {1.0f, -2.0f, 90.0f};
  a.returns = {1.5f, 0.5f, 90.0f};
  a.advantages = {0.5f, 2.5f, 90.0f};
  a.mask = {1, 1, 0};
  b.response = {4};
  b.values = {4.0f};
  b.returns = {1.0f};
  b.advantages = {-3.0f};
  masked = a;
  masked.mask = {0, 0, 0};
  CHECK(value_metrics(SampleSet({masked})).empty());
  const auto list = value_metrics(SampleSet({a, masked, b}));
  const std::map<std::string, double> values(list.begin(), list.end());
  CHECK(values.at("critic/values/mean") == 1.0);
  CHECK(values.at("critic/values/max") == 4.0);
  CHECK(values.at("critic/returns/min") == 0.5);
  CHECK(values.at("critic/advantages/mean") == 0.0);
  // Variances 0.25 of the returns, 7.75 of what is left of them.
  CHECK(values.at("critic/vf_explained_var") == 1.0 - 7.75 / (0.25 + 1e-5));
}
