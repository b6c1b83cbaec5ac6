// SPDX-License-Identifier: Apache-2.0
#include "predict/Policy.hpp"

#include <catch2/catch_test_macros.hpp>

#include "base/Error.hpp"
#include "support/synthetic_profile.hpp"

using namespace taper;

TEST_CASE("bad options and missing degrees are refused") {
  const LatencyProfile profile = test::synthetic_profile(test::small_model_tcp(), {1, 2});
  const DivisorChain chain = DivisorChain::of(4);
  PolicyOptions options;
  CHECK_NOTHROW(Policy(profile, chain, options));
  options.degrees = {1, 4};
  CHECK_THROWS_AS(Policy(profile, chain, options), Error);
  options = {};
  options.scenarios = 5;
  CHECK(options.problems().size() == 1);
  CHECK_THROWS_AS(Policy(profile, chain, options), Error);
}

TEST_CASE("the initial layout can be fixed") {
  PolicyOptions options;
  options.initial = "2x2";
  const DivisorChain chain = DivisorChain::of(4);
  Policy policy(test::synthetic_profile(test::small_model_tcp(), {1, 2}), chain, options);
  Workload workload;
  workload.sequences = 8;
  workload.max_new_tokens = 100;
  CHECK(policy.begin(workload) == Layout::uniform(2, chain));
}
