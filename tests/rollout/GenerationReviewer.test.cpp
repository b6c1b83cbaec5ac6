// SPDX-License-Identifier: Apache-2.0
#include "rollout/GenerationReviewer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "support/synthetic_profile.hpp"

using namespace taper;

namespace {

GenerationReviewer reviewer_on(const DivisorChain& chain) {
  PlannerOptions options;
  options.degrees = {1, 2};
  return {test::synthetic_profile(test::small_model_tcp(), options.degrees), chain, options};
}

}  // namespace

TEST_CASE("a generation is replayed with the changes that were done, in the planner's scale") {
  const DivisorChain chain = DivisorChain::of(2);
  GenerationReviewer reviewer = reviewer_on(chain);
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
  CHECK(stayed.degrees == std::vector{1, 2});
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

TEST_CASE("forecasts are held against the end without the changes after them") {
  const DivisorChain chain = DivisorChain::of(2);
  GenerationReviewer reviewer = reviewer_on(chain);
  Workload work;
  work.sequences = 2;
  work.max_new_tokens = 4096;
  work.prompt_tokens = 200;
  const std::vector<Outcome> outcomes{{0, 100, 4000, false}, {1, 100, 50, false}};
  const Layout apart = Layout::uniform(1, chain), together = Layout::uniform(2, chain);
  GenerationReport report{apart, together};
  const std::int64_t stayed_ns = reviewer.review(report, work, outcomes, 1024).stayed_ns;
  SwitchRecord change{{together, PlanStart::kNow, 0, Repack::kNo}, apart};
  change.at_s = 1e-9 * static_cast<double>(stayed_ns / 2);
  change.report.done = true;
  report.switches.push_back(change);
  const std::int64_t changed_ns = reviewer.review(report, work, outcomes, 1024).replayed_ns;
  REQUIRE(changed_ns != stayed_ns);
  // The machine was half as fast as its profile.
  report.seconds = 2e-9 * static_cast<double>(changed_ns);
  const auto forecast = [&](std::int64_t at_ns, std::int64_t end_ns) {
    const std::int64_t rest = end_ns - at_ns;
    ConsultationRecord record{{apart, {}, at_ns}, {false, stay_in(apart), {}, 0, "", 0}};
    record.decision.prices.push_back(
        {stay_in(apart), {rest, rest - stayed_ns / 100, rest + stayed_ns / 100}, {}, 0});
    report.decisions.push_back(record);
  };
  forecast(stayed_ns / 4, 2 * stayed_ns);       // what would have been
  forecast(stayed_ns * 3 / 4, 2 * changed_ns);  // after the change: what was
  const ForecastFigures figures = reviewer.review(report, work, outcomes, 1024).forecasts;
  CHECK(figures.count == 2);
  CHECK(figures.below_low == 0);
  CHECK(figures.below_high == 2);
}
