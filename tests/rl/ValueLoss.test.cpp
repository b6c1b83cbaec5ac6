// SPDX-License-Identifier: Apache-2.0
#include "rl/ValueLoss.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "rl/GoldenRl.hpp"
#include "rl/PolicyLoss.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("value losses, their gradients and metrics are those of PyTorch") {
  const Json& cases = golden_rl()["value_losses"];
  REQUIRE(cases.size() == 36);
  for (const Json& c : cases) {
    const auto samples = golden_samples(c["batch"], c["loss_tokens"]);
    const Json& batch = golden_rl()["batches"][c["batch"].get<std::string>()];
    const auto how = named(named_aggregations(), c["aggregation"]);
    StepTotals totals;
    for (const Sample& s : samples) totals.add(s.loss_tokens());
    ValueSums sums;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const Sample& s = samples[i];
      const auto values = floats(batch["new_values"][i]), slopes = floats(c["gradient"][i]);
      const double w = token_weight(how, c["length_norm"].get<double>(), totals, s.loss_tokens());
      for (std::size_t t = 0; t < values.size(); ++t) {
        if (!s.carries_loss(t)) continue;
        INFO(c["batch"] << " clip " << c["clip"] << " sample " << i << " token " << t);
        CHECK(add_value_loss(c["clip"].get<double>(), {values[t], s.values[t], s.advantages[t]}, w,
                             sums) == near(slopes[t]));
      }
    }
    CHECK(sums.loss == near(c["sums"]["loss"].get<double>()));
    CHECK(sums.clipped / sums.tokens == near(c["sums"]["clip_fraction"].get<double>()));
    CHECK(sums.value / sums.tokens == near(c["sums"]["value_mean"].get<double>()));
  }
}

TEST_CASE(
    "a value outside the clip learns only where it is farther from the return than its bound") {
  ValueSums sums;
  CHECK(add_value_loss(0.5, {2.0f, 0.0f, 1.0f}, 1.0, sums) == 1.0);  // farther: its own loss
  CHECK(sums.clipped == 0.0);
  CHECK(add_value_loss(0.5, {2.0f, 0.0f, 2.0f}, 1.0, sums) == 0.0);  // has run ahead: held
  CHECK(sums.clipped == 1.0);
  CHECK(sums.loss == 0.5 * (1.0 + 1.5 * 1.5));
  CHECK(add_value_loss(0.0, {2.0f, 0.0f, 1.5f}, 2.0, sums) == 1.0);  // no clip
  CHECK(sums.clipped == 1.0);
}

TEST_CASE("values that are the returns explain all of their variance, a constant none") {
  SampleSet set(golden_samples("ragged", false));
  for (Sample& s : set.here()) s.returns = s.values;
  CHECK(explained_variance(set) == 1.0);
  for (Sample& s : set.here()) s.values.assign(s.values.size(), 0.3f);
  CHECK(std::abs(explained_variance(set)) < 1e-4);
}
