// SPDX-License-Identifier: Apache-2.0
#include "placement/PlacementCosts.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

namespace {

const ModelLayout kBoth{0, {1, 2}}, kFirst{0, {1, 1}}, kSecond{1, {1, 1}};

// Two ranks: a reward model, the reference, a critic, the policy and its generation, each on both
// ranks (option 0), the first (1) or the second one (2), where it takes twice as long.
PlacementCosts two_ranks() {
  PlacementCosts costs;
  costs.ranks = 2;
  const auto add = [&](const char* name, ModelRole role, std::int64_t score, std::int64_t update) {
    PlaceableModel model{name, std::string("Placement/") + name, role, {}};
    for (const ModelLayout& layout : {kBoth, kFirst, kSecond}) {
      const std::int64_t slower = layout == kBoth ? 1 : 2;
      model.options.push_back({layout, slower * score, slower * update, 10, 4, 10});
    }
    costs.models.push_back(model);
  };
  add("reward", ModelRole::kScoring, 30, 0);
  add("reference", ModelRole::kScoring, 20, 0);
  add("critic", ModelRole::kCritic, 20, 50);
  add("policy", ModelRole::kPolicy, 0, 60);
  add("generation", ModelRole::kGeneration, 100, 0);
  costs.models.back().options.pop_back();  // rank 0 generates
  costs.publish_ns = [](const ModelLayout& policy, const ModelLayout& generation) {
    return policy.ranks().contains(generation.ranks()) ? 0 : 7;
  };
  costs.exchange_ns = 3;
  return costs;
}

}  // namespace

TEST_CASE("with all models on all ranks calls follow one another") {
  const PlacementCosts costs = two_ranks();
  std::vector<PlayedCall> calls;
  CHECK(costs.iteration_ns({0, 0, 0, 0, 0}, &calls) == 100 + 30 + 20 + 20 + 50 + 60);
  REQUIRE(calls.size() == 6);
  CHECK(calls.front().model == "generation");
  CHECK(calls.back().model == "policy");
  CHECK(calls.back().begin_ns == 220);
  CHECK(calls.back().end_ns == 280);
  CHECK(costs.published_ns({0, 0, 0, 0, 0}) == 0);
}

TEST_CASE("calls of blocks that share no rank overlap, and each stage waits for the slower one") {
  const PlacementCosts costs = two_ranks();
  // The reward model and the critic on the first rank, the others on the second one.
  std::vector<PlayedCall> calls;
  const std::int64_t scoring = std::max(2 * 30 + 2 * 20, 2 * 20),
                     updates = std::max(2 * 50, 2 * 60);
  CHECK(costs.iteration_ns({1, 2, 1, 2, 0}, &calls) == 100 + scoring + 3 + updates + 3 + 7);
  CHECK(calls[1].begin_ns == 100);  // the reward model and the reference
  CHECK(calls[2].begin_ns == 100);
  CHECK(calls[3].begin_ns == 160);  // values
  CHECK(calls[4].begin_ns == 203);  // both updates
  CHECK(calls[5].begin_ns == 203);
}

TEST_CASE("calls on all ranks come after those of blocks") {
  const PlacementCosts costs = two_ranks();
  // Reward model on all ranks, reference on the first, critic on the second.
  std::vector<PlayedCall> calls;
  CHECK(costs.iteration_ns({0, 1, 2, 0, 0}, &calls) ==
        100 + 2 * 20 + 30 + 3 + std::max(2 * 50 + 60, 60) + 3);
  CHECK(calls[3].model == "reward");
  CHECK(calls[3].begin_ns == 140);
}

TEST_CASE("models are where a placement has them") {
  const PlacementCosts costs = two_ranks();
  ModelSet models;
  models.has_critic = true;
  models.scoring = {{"reference", "Placement/reference", "1"}, {"reward", "Placement/reward", "0"}};
  PlacementOptions options;
  options.policy = options.critic = "1";
  const Placement placement = place(options, models, DivisorChain::of(2));
  std::vector<ModelLayout> layouts;
  for (const PlaceableModel& model : costs.models)
    layouts.push_back(layout_of(model, placement, models));
  CHECK(layouts == std::vector<ModelLayout>{kFirst, kSecond, kSecond, kSecond, kBoth});
}

TEST_CASE("memory is that of the rank that needs most") {
  PlacementCosts costs = two_ranks();
  // The generation has no weights of its own where the policy is; work is one call at a time.
  CHECK(costs.rank_bytes({0, 0, 0, 0, 0}) == 4 * 10 + 4);
  CHECK(costs.rank_bytes({1, 1, 2, 2, 0}) == 2 * 10 + 10 + 4);
  CHECK(costs.rank_bytes({1, 2, 2, 1, 0}) == 3 * 10 + 4);
  // What the generation needs beyond the weights of the policy counts.
  costs.models[3].options[0].weight_bytes = 7;
  CHECK(costs.rank_bytes({0, 0, 0, 0, 0}) == 4 * 10 + 3 + 4);
  CHECK(costs.placements(1'000'000) == 3 * 3 * 3 * 3 * 2);
  CHECK(costs.placements(10) == 10);
}

TEST_CASE("ranks that only generate have weights of their own, wherever the policy ends") {
  PlacementCosts costs;
  costs.ranks = 4;
  costs.models = {{"policy", "", ModelRole::kPolicy, {{{0, {1, 2}}, 0, 0, 10, 0, 10}}},
                  {"generation", "", ModelRole::kGeneration, {{{0, {1, 4}}, 0, 0, 50, 0, 0}}}};
  CHECK(costs.rank_bytes({0, 0}) == 50);  // of ranks 2 and 3
}
