// SPDX-License-Identifier: Apache-2.0
#include "simulate/Account.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "simulate/LengthLaw.hpp"
#include "support/synthetic_profile.hpp"

using namespace taper;

namespace {

GenerationAccount generation(std::int64_t ours, std::int64_t myopic,
                             std::vector<std::int64_t> fixed, std::int64_t oracle) {
  const Layout layout = Layout::uniform(1, DivisorChain::of(2));
  return {0,  {layout, ours, 10, 1, {}, {}}, myopic,      std::move(fixed),
          {}, {oracle, layout, {}},          {4, 1, 2, 3}};
}

}  // namespace

TEST_CASE("gains are against the static layout that is best over the run") {
  std::vector<GenerationAccount> run{generation(900, 950, {1000, 1500}, 800),
                                     generation(1400, 1300, {1400, 1100}, 1000),
                                     generation(995, 995, {1000, 1500}, 990)};  // no room
  const Layout layout = Layout::uniform(2, DivisorChain::of(2));
  run[0].adaptive.switches = {{{5, layout, Repack::kNo}, 0, 3, {}, 0, 0, 100},
                              {{6, layout, Repack::kNo}, 0, 3, {}, 0, 0, -30}};
  run[0].rule_ns = {850, 990};
  run[1].rule_ns = {1500, 1200};  // the second rule is better in all
  run[2].rule_ns = {1000, 1000};
  AccountSummary s;
  add_run(s, run);
  CHECK(s.rule_gain_ns == 10 + 200);
  CHECK(s.generations == 3);
  CHECK(s.with_room == 2);
  CHECK(s.static_ns == 1000 + 1400 + 1000);  // the first layout
  CHECK(s.room_ns == 200 + 400);
  CHECK(s.gain_ns == 100 + 0);
  CHECK(s.myopic_gain_ns == 50 + 100);
  CHECK(s.share() == Catch::Approx(100.0 / 600));
  CHECK(s.missed == 1);
  CHECK(s.switches == 2);
  CHECK(s.false_triggers == 1);
  CHECK(s.false_loss_ns == 30);
  CHECK(s.mean_slower() == 0.0);
  CHECK(s.slower_quantile(95) == Catch::Approx(-0.005));
  CHECK(s.forecasts.count == 12);
  CHECK(s.forecasts.below_high == 9);
}

TEST_CASE("forecast quantiles are hit about as often as they should") {
  const DivisorChain chain = DivisorChain::of(2);
  const SimulatedMachine machine(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  AccountSummary summary;
  for (int seed = 0; seed < 6; ++seed) {
    std::vector<ReplayTrace> traces;
    for (int i = 0; i < 5; ++i) {
      ReplayTrace trace;
      trace.work.iteration = i;
      trace.work.sequences = 64;
      trace.work.prompt_tokens = 64 * 100;
      trace.work.max_new_tokens = 1024;
      const auto lengths = draw_lengths(LengthLaw::kLogNormal, seed, i, 64, 1024);
      for (int k = 0; k < 64; ++k) trace.outcomes.push_back({k, 100, lengths[k], false});
      traces.push_back(std::move(trace));
    }
    add_run(summary, account(traces, PlannerOptions{}, {1, 2}, chain, machine, {.grid = 8}));
  }
  REQUIRE(summary.forecasts.count > 50);
  const double n = summary.forecasts.count;
  CHECK(summary.forecasts.below_low / n < 0.5);   // 0.2 at best; tails are expected too long
  CHECK(summary.forecasts.below_high / n > 0.6);  // 0.8 at best
}
