// SPDX-License-Identifier: Apache-2.0
#include "rollout/GenerationReviewer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
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
  CHECK(reviewer_on(chain).review(report, work, outcomes, 2048).predicted_ns ==
        2 * stayed.replayed_ns);

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

  // What later generations are predicted with is the reviewer's own, whatever the planner says.
  report.switches.clear();
  report.seconds = 1.5e-9 * static_cast<double>(stayed.replayed_ns);
  for (int i = 0; i < 40; ++i) reviewer.review(report, work, outcomes, 1024);
  const auto predicted =
      static_cast<double>(reviewer.review(report, work, outcomes, 700).predicted_ns);
  CHECK(std::abs(predicted / static_cast<double>(stayed.replayed_ns) - 1.5) < 0.01);
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
  // The machine is half as fast as its profile.
  constexpr std::int64_t kScale = 2048;
  const std::int64_t stayed_ns = reviewer.review(report, work, outcomes, kScale).stayed_ns;
  SwitchRecord refused{{together, PlanStart::kNow, 0, Repack::kNo}, apart}, change = refused;
  change.at_s = 1e-9 * static_cast<double>(stayed_ns);  // half way
  change.report.done = true;
  report.switches = {refused, change};
  const GenerationReview changed = reviewer.review(report, work, outcomes, kScale);
  const std::int64_t changed_ns = changed.replayed_ns;
  REQUIRE(changed_ns != stayed_ns);
  CHECK(changed.saved_ns == std::vector{stayed_ns - changed_ns});
  report.seconds = 2e-9 * static_cast<double>(changed_ns);
  // Clocks of leaders and of the one that notes changes differ: the epoch tells the order.
  const auto forecast = [&](std::int64_t epoch, std::int64_t at_ns, std::int64_t end_ns) {
    const std::int64_t rest = end_ns - at_ns;
    ConsultationRecord record{{apart, {}, at_ns, 0, epoch}, {false, stay_in(apart), {}, 0, "", 0}};
    record.decision.prices.push_back(
        {stay_in(apart), {rest, rest - stayed_ns / 100, rest + stayed_ns / 100}, {}, 0});
    report.decisions.push_back(record);
  };
  forecast(0, stayed_ns / 2, 2 * stayed_ns);  // what would have been
  forecast(1, stayed_ns + 1000, 2 * stayed_ns);
  forecast(2, stayed_ns - 1000, 2 * changed_ns);  // after the change: what was
  const ForecastFigures figures = reviewer.review(report, work, outcomes, kScale).forecasts;
  CHECK(figures.count == 3);
  CHECK(figures.below_low == 0);
  CHECK(figures.below_high == 3);
}
