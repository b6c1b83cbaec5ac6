// SPDX-License-Identifier: Apache-2.0
#include "placement/PlacementSearch.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>

using namespace taper;

namespace {

// Models with random prices on the blocks of 2 to 4 ranks.
PlacementCosts random_costs(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  PlacementCosts costs;
  costs.ranks = 2 + 2 * below(2);
  const int scoring = 1 + below(3);
  const auto add = [&](ModelRole role) {
    PlaceableModel model{"model", "Placement/Model", role, {}};
    const std::int64_t work = 1000 + below(9000);
    for (int size = costs.ranks; size >= 1; size /= 2)
      for (int first = 0; first < costs.ranks; first += size) {
        if (role == ModelRole::kGeneration && first > 0) break;
        const std::int64_t ns = work / size + below(300);
        model.options.push_back(
            {{first, {1, size}}, ns, ns * 3 + 100 * size, 100 + below(50), below(50)});
      }
    costs.models.push_back(std::move(model));
  };
  for (int m = 0; m < scoring; ++m) add(ModelRole::kScoring);
  if (below(2) == 1) add(ModelRole::kCritic);
  add(ModelRole::kPolicy);
  add(ModelRole::kGeneration);
  costs.publish_ns = [](const ModelLayout& policy, const ModelLayout& generation) {
    return policy.ranks().contains(generation.ranks()) ? 0 : 500;
  };
  costs.exchange_ns = 20;
  return costs;
}

PlacementSearchOptions without_exhaustion() {
  PlacementSearchOptions options;
  options.exhaustive = 0;
  return options;
}

}  // namespace

TEST_CASE("the search finds the optimum of small instances") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("instance " << seed);
    PlacementCosts costs = random_costs(seed);
    if (seed % 2 == 1) {  // in less memory than the fastest placement needs
      costs.memory = search_placements(costs, {}, {}).list.front().rank_bytes - 1;
      if (search_placements(costs, {}, {}).list.empty()) continue;
    }
    const FoundPlacements all = search_placements(costs, {}, {});
    REQUIRE(all.is_exhaustive);
    CHECK(all.examined == costs.placements(1'000'000));
    const FoundPlacements found = search_placements(costs, without_exhaustion(), {});
    CHECK_FALSE(found.is_exhaustive);
    REQUIRE_FALSE(found.list.empty());
    CHECK(found.list.front().iteration_ns == all.list.front().iteration_ns);
    CHECK(found.list.front().choice == all.list.front().choice);
  }
}

TEST_CASE("no speed makes up for memory that is not there") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    INFO("instance " << seed);
    PlacementCosts costs = random_costs(seed);
    for (PlaceableModel& model : costs.models) {
      PlaceOption& hungry = model.options[seed % model.options.size()];
      hungry.score_ns /= 50, hungry.update_ns /= 50;
      hungry.bytes += 1000;
      costs.memory += model.options.front().bytes;
    }
    const FoundPlacements all = search_placements(costs, {}, {});
    const FoundPlacements found = search_placements(costs, without_exhaustion(), {});
    CHECK(found.list.empty() == all.list.empty());
    if (all.list.empty()) continue;
    CHECK(found.list.front().choice == all.list.front().choice);
  }
}

TEST_CASE("models that work early share ranks at one degree only") {
  PlacementCosts costs;
  costs.ranks = 2;
  for (const ModelRole role : {ModelRole::kScoring, ModelRole::kPolicy, ModelRole::kGeneration}) {
    PlaceableModel model{"model", "Placement/Model", role, {}};
    const bool is_fast_apart = role == ModelRole::kPolicy;
    model.options.push_back({{0, {1, 2}}, is_fast_apart ? 100 : 10, is_fast_apart ? 100 : 10});
    model.options.push_back({{0, {2, 1}}, is_fast_apart ? 10 : 100, is_fast_apart ? 10 : 100});
    costs.models.push_back(std::move(model));
  }
  const auto best = [&] { return search_placements(costs, {}, {}).list.front().choice; };
  CHECK(best() == PlaceChoice{0, 1, 0});
  costs.models[0].works_early = costs.models[1].works_early = true;
  CHECK(best() != PlaceChoice{0, 1, 0});
  CHECK(costs.is_possible(best()));
  CHECK(search_placements(costs, without_exhaustion(), {}).list.front().choice == best());
}

TEST_CASE("placements are listed best first, with the figures that they have") {
  const PlacementCosts costs = random_costs(3);
  PlacementSearchOptions options;
  options.top = 12;
  const FoundPlacements found = search_placements(costs, options, {});
  REQUIRE(found.list.size() == 12);
  for (std::size_t i = 0; i < found.list.size(); ++i) {
    const FoundPlacement& p = found.list[i];
    CHECK(p.iteration_ns == costs.iteration_ns(p.choice));
    CHECK(p.published_ns == costs.published_ns(p.choice));
    CHECK(p.rank_bytes == costs.rank_bytes(p.choice));
    if (i > 0) CHECK(found.list[i - 1].iteration_ns <= p.iteration_ns);
  }
}

TEST_CASE("more memory never costs time, and fewer options never save any") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    PlacementCosts costs = random_costs(seed);
    std::int64_t before = -1;
    for (const std::int64_t memory : {300, 400, 500, 700, 1000, 0}) {
      costs.memory = memory;
      const FoundPlacements found = search_placements(costs, {}, {});
      if (found.list.empty()) {
        CHECK(before == -1);
        continue;
      }
      if (before >= 0) CHECK(found.list.front().iteration_ns <= before);
      before = found.list.front().iteration_ns;
      if (memory > 0) CHECK(found.list.front().rank_bytes <= memory);
    }
    for (PlaceableModel& model : costs.models) {
      if (model.options.size() < 2) continue;
      model.options.erase(model.options.begin() +
                          static_cast<std::ptrdiff_t>(seed % model.options.size()));
      CHECK(search_placements(costs, {}, {}).list.front().iteration_ns >= before);
    }
  }
}

TEST_CASE("equal prices give equal placements, and what is known is never better") {
  const PlacementCosts costs = random_costs(11);
  const PlaceChoice known(costs.models.size(), 0);
  const FoundPlacements a = search_placements(costs, without_exhaustion(), {known});
  const FoundPlacements b = search_placements(costs, without_exhaustion(), {known});
  CHECK(a.examined == b.examined);
  REQUIRE(a.list.size() == b.list.size());
  for (std::size_t i = 0; i < a.list.size(); ++i) CHECK(a.list[i].choice == b.list[i].choice);
  CHECK(a.list.front().iteration_ns <= costs.iteration_ns(known));
}
