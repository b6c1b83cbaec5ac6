// SPDX-License-Identifier: Apache-2.0
#include "pricing/RunPrices.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
#include "pricing/PlanRuns.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

const PlaceableModel& model_of(const PlacementCosts& costs, ModelRole role) {
  return costs.models[costs.index_of(role)];
}

const PlaceOption& option_of(const PlaceableModel& model, const ModelLayout& layout) {
  const auto at = std::find_if(model.options.begin(), model.options.end(),
                               [&](const PlaceOption& o) { return o.layout == layout; });
  REQUIRE(at != model.options.end());
  return *at;
}

// Three prompts of 11 tokens, with two responses each.
ReplayTrace six_samples() {
  ReplayTrace trace;
  trace.work.sequences = 6;
  trace.work.samples = 2;
  trace.work.prompt_tokens = 66;
  trace.work.max_new_tokens = 64;
  for (const int response : {5, 10, 20, 20, 40, 30})
    trace.outcomes.push_back({std::ssize(trace.outcomes), 11, response, false});
  return trace;
}

}  // namespace

TEST_CASE("calls are priced by the rows of the replica that has most") {
  RunOptions run = ppo_run();
  run.training.mini_batches = 1;
  run.training.shared_prompts = true;
  run.rollout.max_prompt_tokens = 16;
  run.rollout.max_new_tokens = 64;
  const PlacementCosts costs =
      price_run(run, DivisorChain({1, 2}), {profile_by_rows({1, 2})}, {six_samples()});
  // One microsecond a row forward, three with the backward pass, a tenth more a log-prob; a step of
  // 1 ms, half of it shared out.
  const int inputs = 3 * 10 + (5 + 10 + 20 + 20 + 40 + 30);  // a prompt is computed once
  const int targets = 125;
  // At least four bundles: the responses to the last prompt are in two of them, which computes it
  // twice.
  const int rows = inputs + 10;
  const PlaceableModel& policy = model_of(costs, ModelRole::kPolicy);
  CHECK(option_of(policy, {0, {1, 1}}).update_ns == 3000 * rows + 300 * targets + 1'000'000);
  CHECK(option_of(policy, {1, {1, 1}}).update_ns == option_of(policy, {0, {1, 1}}).update_ns);
  // The replica that has these two.
  CHECK(option_of(policy, {0, {1, 2}}).update_ns == 3000 * (50 + 40) + 300 * 70 + 750'000);
  const PlaceableModel& critic = model_of(costs, ModelRole::kCritic);
  CHECK(option_of(critic, {0, {1, 1}}).score_ns == 1000 * inputs);
  CHECK(option_of(critic, {0, {1, 1}}).update_ns == 3000 * rows + 1'000'000);
  // A reward model reads all tokens of all samples, dealt by length.
  const PlaceableModel& reward = costs.models.front();
  CHECK(reward.name == "reward model preferred");
  CHECK(reward.key == "Rewards/preferred/Ranks");
  CHECK(option_of(reward, {0, {1, 1}}).score_ns == 1000 * (6 * 11 + targets));
  CHECK(option_of(reward, {0, {1, 2}}).score_ns == 1000 * (51 + 31 + 16));
  CHECK(costs.models[1].name == "reference");
  CHECK(option_of(costs.models[1], {0, {1, 1}}).score_ns == 1000 * inputs + 100 * targets);
}

TEST_CASE("an offloaded reference needs memory for its weights only while it scores") {
  RunOptions run = ppo_run();
  const auto reference = [&] {
    const PlacementCosts costs =
        price_run(run, DivisorChain({1}), {profile_by_rows({1})}, {six_samples()});
    return costs.models[1].options.front();
  };
  const PlaceOption kept = reference();
  run.training.offload_reference = true;
  const PlaceOption offloaded = reference();
  CHECK(offloaded.bytes == 0);
  CHECK(offloaded.work_bytes == kept.work_bytes + kept.bytes);
}

TEST_CASE("activation checkpointing costs another forward pass, mini-batches another step") {
  RunOptions run = ppo_run();
  run.training.mini_batches = 1;
  const DivisorChain one({1});
  const std::vector<LatencyProfile> profiles{profile_by_rows({1})};
  const auto update = [&] {
    const PlacementCosts costs = price_run(run, one, profiles, {six_samples()});
    return model_of(costs, ModelRole::kCritic).options.front().update_ns;
  };
  const std::int64_t once = update();
  run.training.checkpointing = true;
  CHECK(update() == once + (once - 1'000'000) / 3);
  run.training.checkpointing = false;
  run.training.mini_batches = 3;
  const std::int64_t thrice = once + 2'000'000 + 2 * 10 * 3000;  // each prompt in two bundles
  CHECK(update() == thrice);
  run.training.epochs = 2;
  CHECK(update() == 2 * thrice);
}

TEST_CASE("layouts are those that chain, model and profile have") {
  const RunOptions run = ppo_run();
  const PlacementCosts costs =
      price_run(run, DivisorChain({1, 2, 4}), {profile_by_rows({1, 2})}, {six_samples()});
  // Blocks of 4, 2 and 1 ranks at TP 1 and 2.
  CHECK(model_of(costs, ModelRole::kPolicy).options.size() == 2 + 2 * 2 + 4);
  CHECK(model_of(costs, ModelRole::kGeneration).options.size() == 2 + 2 + 1);
  for (const PlaceOption& o : model_of(costs, ModelRole::kGeneration).options) {
    CHECK(o.layout.first == 0);
    CHECK(o.score_ns > 0);
  }
  for (const PlaceableModel& model : costs.models)
    for (const PlaceOption& o : model.options) CHECK(o.bytes > 0);
  // One rank trains, two others generate: each gets the whole model.
  CHECK(costs.publish_ns({2, {1, 1}}, {0, {1, 2}}) > costs.publish_ns({2, {1, 1}}, {0, {1, 1}}));
  CHECK(costs.publish_ns({0, {1, 2}}, {0, {1, 1}}) == 0);
  // Ranks that train half of the model and generate with all of it get the other half at each step;
  // with the smaller degree they have what they need.
  const std::int64_t halves = costs.publish_ns({0, {2, 1}}, {0, {1, 2}});
  CHECK(halves > 0);
  CHECK(costs.publish_ns({0, {1, 2}}, {0, {2, 1}}) == 0);
  // Two of four ranks that generate train as well: they get the rest at each step, and in addition
  // the others everything once.
  const std::int64_t others = costs.publish_ns({0, {1, 2}}, {0, {1, 4}});
  CHECK(others > 0);
  const std::int64_t both = costs.publish_ns({0, {2, 1}}, {0, {1, 4}});
  CHECK(both - halves < others);  // two ranks begin to send a tensor, each a half
  CHECK(both - halves > others / 2);
  // Ten copies take little longer than two: they pass on to one another what they get.
  const PlacementCosts twelve =
      price_run(run, DivisorChain({1, 2, 4, 12}), {profile_by_rows({1, 2})}, {six_samples()});
  CHECK(twelve.publish_ns({0, {1, 2}}, {0, {1, 12}}) < 2 * others);
  RunOptions twice = run;
  twice.training.mini_batches = 2 * run.training.mini_batches;
  CHECK(price_run(twice, DivisorChain({1, 2, 4}), {profile_by_rows({1, 2})}, {six_samples()})
            .publish_ns({0, {2, 1}}, {0, {1, 2}}) == 2 * halves);
}

TEST_CASE("a replica has as many sequences in flight as the run allows, whatever its degree") {
  RunOptions run = ppo_run();
  const auto generation = [&](int max_running, int tp) {
    run.rollout.max_running = max_running;
    const PlacementCosts costs =
        price_run(run, DivisorChain({1, 2}), {profile_by_rows({1, 2})}, {six_samples()});
    const PlaceableModel model = model_of(costs, ModelRole::kGeneration);
    return model.options.at(static_cast<std::size_t>(*model.find({0, {tp, 2 / tp}})));
  };
  CHECK(generation(2, 2).score_ns > generation(6, 2).score_ns);
  CHECK(generation(4, 2).score_ns > generation(6, 2).score_ns);
  CHECK(generation(3, 1).score_ns == generation(6, 1).score_ns);  // three samples in each replica
  CHECK(2 * generation(2, 2).work_bytes == generation(2, 1).work_bytes);
}

TEST_CASE("generations that are bound to all ranks have no other place") {
  RunOptions run = ppo_run();
  const auto places = [&] {
    const PlacementCosts costs =
        price_run(run, DivisorChain({1, 2}), {profile_by_rows({1, 2})}, {six_samples()});
    return model_of(costs, ModelRole::kGeneration).options.size();
  };
  CHECK(places() == 3);
  run.rollout.mode = PlannerMode::kAdaptive;
  CHECK(places() == 2);
}

TEST_CASE("a model that can be nowhere is an error that names it") {
  CHECK_THROWS_MATCHES(
      price_run(ppo_run(), DivisorChain({1, 3}), {profile_by_rows({2})}, {six_samples()}), Error,
      MessageMatches(ContainsSubstring("can be on no block of 3 ranks (divisor chain 1,3)")));
}

TEST_CASE("a model whose shape no profile has is an error that names it") {
  LatencyProfile other = profile_by_rows({1});
  other.identity.model["hidden"] = "4096";
  CHECK_THROWS_MATCHES(price_run(ppo_run(), DivisorChain({1}), {other}, {six_samples()}), Error,
                       MessageMatches(ContainsSubstring(
                           "no --profile is of a model with the shape of the reference")));
  other = profile_by_rows({1});
  other.passes.clear();
  CHECK_THROWS_MATCHES(price_run(ppo_run(), DivisorChain({1}), {other}, {six_samples()}), Error,
                       MessageMatches(ContainsSubstring("--passes")));
}

TEST_CASE("expected generations have the run's prompts and lengths") {
  RunOptions run = ppo_run();
  run.rollout.lengths = "heavy-tail";
  run.rollout.max_new_tokens = 50;
  const ModelFiles files(run.model.directory);
  const auto traces = expected_generations(run, files, 2);
  REQUIRE(traces.size() == 2);
  for (const ReplayTrace& trace : traces) {
    CHECK(std::ssize(trace.outcomes) == run.rollout.prompts * run.rollout.samples);
    std::int64_t prompts = 0;
    for (const Outcome& o : trace.outcomes) {
      CHECK(o.response >= 1);
      CHECK(o.response <= 50);
      prompts += o.prompt;
    }
    CHECK(prompts == trace.work.prompt_tokens);
  }
  run.rollout.lengths = "/some/run";
  CHECK_THROWS_MATCHES(expected_generations(run, files, 1), Error,
                       MessageMatches(ContainsSubstring("--lengths")));
}
