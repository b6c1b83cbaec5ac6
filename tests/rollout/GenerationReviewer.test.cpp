// SPDX-License-Identifier: Apache-2.0
#include "rollout/GenerationReviewer.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/synthetic_profile.hpp"

using namespace taper;

TEST_CASE("a generation is replayed with the changes that were done, in the planner's scale") {
  const DivisorChain chain = DivisorChain::of(2);
  PlannerOptions options;
  options.degrees = {1, 2};
  GenerationReviewer reviewer(test::synthetic_profile(test::small_model_tcp(), {1, 2}), chain,
                              options);
  // Short responses, and a long one that two ranks end sooner.
  std::vector<Outcome> outcomes;
  Workload work;
  work.sequences = 16;
  work.max_new_tokens = 4096;
  for (int i = 0; i < work.sequences; ++i) {
    outcomes.push_back({i, 100, i == 0 ? 4000 : 50, false});
    work.prompt_tokens += 100;
  }
  const Layout apart = Layout::uniform(1, chain), together = Layout::uniform(2, chain);
  GenerationReport report{apart, together};
  const GenerationReview stayed = reviewer.review(report, work, outcomes, 1024);
  CHECK(stayed.replayed_ns == stayed.stayed_ns);
  CHECK(stayed.predicted_ns == stayed.replayed_ns);
  CHECK(stayed.saved_ns.empty());
  CHECK(stayed.degrees == options.degrees);
  CHECK(stayed.static_ns.front() == stayed.stayed_ns);
  CHECK(reviewer.review(report, work, outcomes, 2048).predicted_ns == 2 * stayed.replayed_ns);

  SwitchRecord change{{together, PlanStart::kNow, 0, Repack::kNo}, apart};
  change.at_s = 1e-9 * static_cast<double>(stayed.stayed_ns / 4);
  report.switches.push_back(change);
  CHECK(reviewer.review(report, work, outcomes, 1024).replayed_ns == stayed.stayed_ns);
  report.switches.front().report.done = true;
  const GenerationReview changed = reviewer.review(report, work, outcomes, 1024);
  CHECK(changed.replayed_ns != stayed.stayed_ns);
  CHECK(changed.stayed_ns == stayed.stayed_ns);
  REQUIRE(changed.saved_ns.size() == 1);
  CHECK(changed.saved_ns.front() == stayed.stayed_ns - changed.replayed_ns);
}
