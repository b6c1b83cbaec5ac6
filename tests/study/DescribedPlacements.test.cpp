// SPDX-License-Identifier: Apache-2.0
#include "study/DescribedPlacements.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
#include "placement/PlacementSearch.hpp"
#include "study/SimulateJob.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

SimulateOptions eight_gpus() {
  SimulateOptions o;
  o.generation.prompts_per_rank = 2;
  o.generation.max_new_tokens = 2048;
  o.generation.lengths.long_tokens = 1024;
  o.training.critic = true;
  o.training.reward_models = 1;
  return o;
}

PlacementCosts costs_of(const SimulateOptions& o) {
  return price_case(o, first_trace(o, setting_of(o)), possible_degrees(o.machine, o.model));
}

std::int64_t best_ns(const PlacementCosts& costs) {
  const FoundPlacements found = search_placements(costs, {}, {});
  return found.list.empty() ? 0 : found.list.front().iteration_ns;
}

}  // namespace

TEST_CASE("the models of a described iteration have prices on all blocks") {
  const PlacementCosts costs = costs_of(eight_gpus());
  REQUIRE(costs.models.size() == 5);
  for (const PlaceableModel& model : costs.models) {
    INFO(model.name);
    CHECK_FALSE(model.options.empty());
    const bool learns = model.role == ModelRole::kPolicy || model.role == ModelRole::kCritic;
    for (const PlaceOption& o : model.options) {
      CHECK((o.update_ns > 0) == learns);
      CHECK((o.score_ns > 0) == (model.role != ModelRole::kPolicy));
      CHECK(o.bytes > 0);
    }
  }
  // Twice the ranks are faster, but not more than twice as fast.
  const auto update = [&](const ModelLayout& layout) {
    const auto& list = costs.models[costs.index_of(ModelRole::kPolicy)].options;
    return std::find_if(list.begin(), list.end(),
                        [&](const PlaceOption& o) { return o.layout == layout; })
        ->update_ns;
  };
  CHECK(update({0, {4, 2}}) < update({0, {4, 1}}));
  CHECK(2 * update({0, {4, 2}}) > update({0, {4, 1}}));
}

TEST_CASE("ranks that generate at a smaller degree than they train at bring the rest each step") {
  SimulateOptions o = eight_gpus();
  const auto publish_ns = [](const PlacementCosts& costs, int trained, int used) {
    return costs.publish_ns({0, {trained, 8 / trained}}, {0, {used, 8 / used}});
  };
  const PlacementCosts costs = costs_of(o);
  CHECK(publish_ns(costs, 2, 2) == 0);
  CHECK(publish_ns(costs, 2, 4) == 0);
  const std::int64_t halves = publish_ns(costs, 2, 1);
  CHECK(halves > 0);
  CHECK(publish_ns(costs, 4, 1) > halves);
  // Where others generate as well, these get all of it in addition.
  const auto on_half = [&](int tp) { return costs.publish_ns({0, {tp, 4 / tp}}, {0, {1, 8}}); };
  CHECK(on_half(2) < on_half(1) + halves);  // two ranks begin to send a tensor
  CHECK(on_half(2) > on_half(1) / 2 + halves);
  o.training.mini_batches *= 2;
  CHECK(std::abs(publish_ns(costs_of(o), 2, 1) - 2 * halves) <= 1);
  o.machine.ranks_per_node = 4;
  CHECK(publish_ns(costs_of(o), 2, 1) > 4 * halves);
}

TEST_CASE("slower devices take longer, faster links never do") {
  SimulateOptions o = eight_gpus();
  const std::int64_t before = best_ns(costs_of(o));
  o.machine.inside.gb_s *= 2;
  CHECK(best_ns(costs_of(o)) <= before);
  o.machine.device.tflops /= 2;
  CHECK(best_ns(costs_of(o)) > before);
}

TEST_CASE("the share of the generation follows from what else an iteration does") {
  SimulateOptions o = eight_gpus();
  const PlacementCosts much = costs_of(o);
  o.training.critic = false;
  o.training.reward_models = 0;
  const PlacementCosts little = costs_of(o);
  const double least = generation_share(much, 1e10), most = generation_share(little, 1e10);
  CHECK(least > 0);
  CHECK(least < most);
  CHECK(most < 1);
  CHECK(generation_share(much, 1e12) > least);
  o.play.seeds = o.play.iterations = o.play.warm_up = 1;
  o.play.oracle_grid = 0;
  const SimulatedCase played = simulate(o, "case");
  CHECK(played.share > 0);
  CHECK(played.share < 1);
}

TEST_CASE("the search finds the best placement of eight described GPUs") {
  SimulateOptions o = eight_gpus();
  o.training.reward_models = 0;
  const PlacementCosts costs = costs_of(o);
  PlacementSearchOptions all, some;
  all.exhaustive = costs.placements(10'000'000);
  some.exhaustive = 0;
  const FoundPlacements expected = search_placements(costs, all, {});
  REQUIRE(expected.is_exhaustive);
  CHECK(expected.examined > 100'000);
  CHECK(search_placements(costs, some, {}).list.front().iteration_ns ==
        expected.list.front().iteration_ns);
}

TEST_CASE("on many GPUs no strategy beats the search") {
  SimulateOptions o = eight_gpus();
  for (const int ranks : {64, 512}) {
    o.machine.ranks = ranks;
    const PlacementCosts costs = costs_of(o);
    const FoundPlacements found = search_placements(costs, {}, {});
    REQUIRE_FALSE(found.list.empty());
    for (const int tp : {1, 2, 4, 8}) {
      PlaceChoice flat;
      for (const PlaceableModel& model : costs.models)
        for (std::size_t i = 0; i < model.options.size(); ++i)
          if (model.options[i].layout == ModelLayout{0, {tp, ranks / tp}})
            flat.push_back(static_cast<int>(i));
      REQUIRE(flat.size() == costs.models.size());
      if (costs.rank_bytes(flat) <= costs.memory)
        CHECK(found.list.front().iteration_ns <= costs.iteration_ns(flat));
    }
  }
}

TEST_CASE("a row has only the degrees that are asked for") {
  SimulateOptions o = eight_gpus();
  o.play.degrees = {8};
  const std::string row = placement_row(o, "eight");
  CHECK_THAT(row, ContainsSubstring(":8x"));
  for (const char* other : {":1x", ":2x", ":4x"}) CHECK_THAT(row, !ContainsSubstring(other));
}

TEST_CASE("a row has the strategies and a placement that is as good as the best of them") {
  const std::string row = placement_row(eight_gpus(), "eight");
  CHECK_THAT(row, ContainsSubstring("eight"));
  CHECK_THAT(row, ContainsSubstring("policy "));
  CHECK_THAT(row, ContainsSubstring("generation 0-"));
  CHECK_THAT(placement_head(), ContainsSubstring("separation"));
  const std::size_t end = row.find("x ");
  REQUIRE(end != std::string::npos);
  CHECK(std::stod(row.substr(row.rfind(' ', end) + 1)) >= 1.0);
  SimulateOptions small = eight_gpus();
  small.machine.device.memory_gb = 30;
  CHECK_THROWS_MATCHES(placement_row(small, "small"), Error,
                       MessageMatches(ContainsSubstring("fits in memory")));
}
