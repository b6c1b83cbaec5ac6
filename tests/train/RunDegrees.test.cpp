// SPDX-License-Identifier: Apache-2.0
#include "train/RunDegrees.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
#include "session/LayoutChecks.hpp"
#include "support/Scratch.hpp"
#include "train/PlacementFile.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

// The chain that the ranks of a run have.
std::vector<int> chain(const RunOptions& o, int ranks) {
  return chain_with(ranks, degrees_of(o, ranks)).degrees();
}

void check_refused(const RunOptions& o, int ranks, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    CHECK_THROWS_MATCHES(degrees_of(o, ranks), Error, MessageMatches(ContainsSubstring(word)));
}

}  // namespace

TEST_CASE("the chain of a run's ranks has the degrees of all its models") {
  RunOptions o;
  CHECK(chain(o, 6) == std::vector<int>{1, 2, 6});
  o.training.tp = 3;
  CHECK(chain(o, 6) == std::vector<int>{1, 3, 6});
  CHECK(chain(o, 12) == std::vector<int>{1, 3, 6, 12});
  o = {};
  o.rollout.layout = "3+3";
  CHECK(chain(o, 6) == std::vector<int>{1, 3, 6});
  o = {};
  RewardOptions& reward = o.rewards.emplace_back();
  reward.kind = RewardKind::kModel;
  reward.model.tp = 3;
  CHECK(chain(o, 6) == std::vector<int>{1, 3, 6});
  o = {};
  o.experience.advantage.estimator = AdvantageEstimator::kGae;
  o.critic.tp = 3;
  CHECK(chain(o, 6) == std::vector<int>{1, 3, 6});
  o = {};
  o.placement.policy = "0-2:1x3";  // the size of its block
  CHECK(chain(o, 6) == std::vector<int>{1, 3, 6});
}

TEST_CASE("degrees that the ranks cannot have are refused with their keys") {
  RunOptions o;
  o.training.tp = 4;
  check_refused(o, 6, {"Training/Tensor Parallel is 4", "the 6 ranks"});
  o.training.tp = 2;
  o.rollout.tp = 3;
  check_refused(o, 6, {"Training/Tensor Parallel is 2 and Rollout/Tensor Parallel is 3"});
  o = {};
  o.rollout.layout = "2+2";
  check_refused(o, 8, {"Rollout/Layout is 2+2"});
  o.placement.strategy = PlacementStrategy::kSeparation;  // of the ranks that generate
  CHECK_NOTHROW(degrees_of(o, 8));
}

TEST_CASE("a plan for other ranks is refused before its degrees are looked at") {
  const Scratch scratch;
  RunOptions o;
  o.placement.strategy = PlacementStrategy::kPlan;
  o.placement.file = (scratch / "plan.yaml").string();
  PlacementFile plan;
  plan.ranks = 4;
  plan.models = {"policy"};
  plan.settings = {{"Placement/Policy", "0-1:1x2"}};
  write_placement_file(o.placement.file, plan);
  o.placement.policy = "0-1:1x2";
  CHECK(chain(o, 4) == std::vector<int>{1, 2, 4});
  check_refused(o, 3, {"a plan for 4 ranks"});
}
