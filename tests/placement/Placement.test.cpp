// SPDX-License-Identifier: Apache-2.0
#include "placement/Placement.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

const DivisorChain kFour({1, 2, 4});

ModelSet four_models() {
  ModelSet models;
  models.has_critic = true;
  models.scoring = {{"reference", "Placement/Reference", "", 1},
                    {"preferred", "Rewards/preferred/Ranks", "", 1}};
  return models;
}

PlacementOptions strategy(PlacementStrategy strategy) {
  PlacementOptions options;
  options.strategy = strategy;
  return options;
}

}  // namespace

TEST_CASE("flattening puts all models on all ranks") {
  const Placement p = place({}, four_models(), kFour);
  CHECK(p.is_flat(4));
  CHECK(p.block_sizes(4).empty());
  for (const ModelLayout& layout : {p.policy, p.generation, *p.critic, p.scoring[0], p.scoring[1]})
    CHECK(layout == ModelLayout{0, {1, 4}});
  CHECK_FALSE(place({}, {}, kFour).critic);
}

TEST_CASE("interleaving gives models that only score ranks of their own") {
  const PlacementOptions options = strategy(PlacementStrategy::kInterleaving);
  const Placement p = place(options, four_models(), kFour);
  CHECK(p.policy == ModelLayout{0, {1, 4}});
  CHECK(p.scoring[0] == ModelLayout{0, {1, 2}});
  CHECK(p.scoring[1] == ModelLayout{2, {1, 2}});
  CHECK(p.block_sizes(4) == std::vector{2});
  CHECK(describe(p, four_models()) ==
        "policy on ranks 0-3 (TPxDP 1x4), generation on ranks 0-3 (TPxDP 1x4), critic on ranks 0-3 "
        "(TPxDP 1x4), reference on ranks 0-1 (TPxDP 1x2), preferred on ranks 2-3 "
        "(TPxDP 1x2)");
  // More models than blocks.
  ModelSet models = four_models();
  models.scoring.push_back({"other", "Rewards/other/Ranks", "", 1});
  const Placement two = place(options, models, DivisorChain({1, 2}));
  CHECK(two.scoring[0].first == 0);
  CHECK(two.scoring[1].first == 1);
  CHECK(two.scoring[2].first == 0);
  // A block holds a replica.
  models.scoring[0].tp = 2;
  const Placement wide = place(options, models, kFour);
  CHECK(wide.scoring[0] == ModelLayout{0, {2, 1}});
  CHECK(wide.scoring[1] == ModelLayout{2, {1, 2}});
  // Nothing to share out.
  CHECK(place(options, {}, kFour).is_flat(4));
  CHECK(place(options, four_models(), DivisorChain({1})).is_flat(1));
}

TEST_CASE("separation trains on other ranks than those that generate") {
  const PlacementOptions options = strategy(PlacementStrategy::kSeparation);
  const Placement p = place(options, four_models(), kFour);
  CHECK(p.policy == ModelLayout{2, {1, 2}});
  CHECK(*p.critic == p.policy);
  CHECK(p.generation == ModelLayout{0, {1, 2}});
  CHECK(p.scoring[0] == p.generation);
  const Placement three = place(options, four_models(), DivisorChain({1, 3}));
  CHECK(three.policy == ModelLayout{2, {1, 1}});
  CHECK(three.generation == ModelLayout{0, {1, 1}});
}

TEST_CASE("a strategy asks for blocks of the right size, if the degrees go with them") {
  const auto block = [](PlacementStrategy s, const ModelSet& models, int ranks) {
    const auto degrees = named_degrees(strategy(s), models, ranks);
    const bool is_there =
        !degrees.empty() && degrees.back().first.starts_with("Placement/Strategy");
    return is_there ? degrees.back().second : 0;
  };
  ModelSet models = four_models();
  CHECK(block(PlacementStrategy::kSeparation, models, 6) == 3);
  CHECK(block(PlacementStrategy::kSeparation, models, 12) == 6);
  CHECK(block(PlacementStrategy::kSeparation, models, 7) == 0);
  CHECK(block(PlacementStrategy::kFlattening, models, 6) == 0);
  CHECK(block(PlacementStrategy::kInterleaving, models, 6) == 3);
  models.scoring[1].ranks = "0-0";  // only one is left to be dealt
  CHECK(block(PlacementStrategy::kInterleaving, models, 6) == 0);
  models.policy_tp = 4;
  CHECK(block(PlacementStrategy::kSeparation, models, 12) == 0);
  const Placement p =
      place(strategy(PlacementStrategy::kSeparation), four_models(), DivisorChain({1, 3, 6}));
  CHECK(p.policy == ModelLayout{3, {1, 3}});
  CHECK(p.generation == ModelLayout{0, {1, 3}});
  CHECK(p.idle_ranks(6).empty());
  const Placement idle =
      place(strategy(PlacementStrategy::kSeparation), four_models(), DivisorChain({1, 2, 6}));
  CHECK(idle.idle_ranks(6) == std::vector{2, 3});
}

TEST_CASE("options place models whatever the strategy is") {
  PlacementOptions options = strategy(PlacementStrategy::kSeparation);
  options.generation = "0-3";
  options.critic = "0:1x1";
  ModelSet models = four_models();
  models.scoring[1].ranks = "0-1:2x1";
  const Placement p = place(options, models, kFour);
  CHECK(p.generation == ModelLayout{0, {1, 4}});
  CHECK(*p.critic == ModelLayout{0, {1, 1}});
  CHECK(p.scoring[1] == ModelLayout{0, {2, 1}});
  CHECK(p.policy == ModelLayout{2, {1, 2}});
  CHECK(p.block_sizes(4) == std::vector{1, 2});
  const auto degrees = named_degrees(options, models, 4);
  CHECK(degrees ==
        std::vector<std::pair<std::string, int>>{{"Placement/Generation (ranks)", 4},
                                                 {"Placement/Critic (ranks)", 1},
                                                 {"Placement/Critic (tensor parallel)", 1},
                                                 {"Rewards/preferred/Ranks (ranks)", 2},
                                                 {"Rewards/preferred/Ranks (tensor parallel)", 2},
                                                 {"Placement/Strategy (ranks of a block)", 2}});
}

TEST_CASE("ranks that cannot be are refused with their option") {
  const auto refused = [](const std::string& text, int tp, const char* words) {
    ModelSet models = four_models();
    models.scoring[0].ranks = text;
    models.scoring[0].tp = tp;
    CHECK_THROWS_MATCHES(place({}, models, kFour), Error,
                         MessageMatches(ContainsSubstring("Placement/Reference is " + text) &&
                                        ContainsSubstring(words)));
  };
  refused("1-2", 1, "write 0-1 or 2-3");
  refused("0-7", 1, "ranks below 4");
  refused("0-2", 1, "one of 1, 2, 4 ranks");
  refused("0-1", 4, "too few for a model of tensor-parallel degree 4");
  PlacementOptions options;
  options.generation = "2-3";
  CHECK_THROWS_MATCHES(place(options, {}, kFour), Error,
                       MessageMatches(ContainsSubstring("Placement/Generation is 2-3") &&
                                      ContainsSubstring("begin at rank 0")));
  options.policy = "first";
  options.reference = "0-1:3x1";
  CHECK(options.problems().size() == 2);
  CHECK_THAT(options.problems().front(), ContainsSubstring("Placement/Policy is 'first'"));
  CHECK_THAT(options.problems().back(), ContainsSubstring("4-7:2x2"));
}
