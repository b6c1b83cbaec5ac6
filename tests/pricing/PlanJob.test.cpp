// SPDX-License-Identifier: Apache-2.0
#include "pricing/PlanJob.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "io/Json.hpp"
#include "pricing/PlanRuns.hpp"
#include "pricing/PlanTable.hpp"
#include "profile/ProfileFile.hpp"
#include "profile/RunIdentity.hpp"
#include "session/StopRequest.hpp"
#include "support/RewardDirectory.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

// A run whose profile says that the sum of gradients costs most.
struct Planned : TestRanks {
  Planned() {
    const ModelFiles files(run.model.directory);
    const ProfileIdentity here = gather_identity(files, run.model.type, ranks);
    if (ranks.rank() == 0) {
      LatencyProfile profile = profile_by_rows({1, 2});
      profile.identity = here;
      for (PassSample& s : profile.passes)
        if (s.kind == PassKind::kUpdate && s.replicas > 1) s.time_ns = 200'000'000;
      write_profile(scratch / "p.h5", profile);
      write_reward_model(TAPER_DATA_DIR "/model", {}, scratch / "reward");
    }
    barrier(ranks.world());
    run.rewards.front().model.directory = (scratch / "reward").string();
    run.training.iterations = 3;
    run.output = (scratch / "run").string();
    run.rollout.kv_memory_mb = 16;
    options.profiles = {(scratch / "p.h5").string()};
  }

  MakeTrainJob make() {
    return [this](const RunOptions& o) { return std::make_unique<TrainJob>(o, "", ranks, stop); };
  }

  Scratch scratch;
  StopRequest stop;
  RunOptions run = ppo_run();
  PlanOptions options;
  DivisorChain chain = DivisorChain::of(world_size());
};

std::string setting(const PlannedPlacement& p, const std::string& name) {
  for (const auto& [known, value] : p.settings)
    if (known == name) return value;
  return "";
}

}  // namespace

TEST_CASE("models learn on one rank each where sums of gradients are slow") {
  Planned w;
  const PlannedPlacements plans = plan_run(w.run, w.chain, w.options);
  REQUIRE_FALSE(plans.found.empty());
  CHECK(plans.is_exhaustive);
  REQUIRE_FALSE(plans.strategies.empty());
  CHECK(plans.strategies.front().name == "flattening");
  CHECK(plans.found.front().iteration_ns <= plans.strategies.front().iteration_ns);
  for (std::size_t i = 1; i < plans.found.size(); ++i)
    CHECK(plans.found[i - 1].iteration_ns <= plans.found[i].iteration_ns);
  CHECK_THAT(to_table(plans), ContainsSubstring("flattening"));
  CHECK(parse_json(to_json_lines(plans).substr(0, to_json_lines(plans).find('\n')),
                   "line")["name"] == "flattening");
  if (world_size() == 1) return;
  CHECK(plans.strategies.size() == 3);
  CHECK_THAT(setting(plans.found.front(), "Placement/Policy"), ContainsSubstring(":1x1"));
  CHECK_THAT(setting(plans.found.front(), "Placement/Critic"), ContainsSubstring(":1x1"));
  CHECK(2 * plans.found.front().iteration_ns < plans.strategies.front().iteration_ns);
}

TEST_CASE("the file of a plan places the models of a run as planned") {
  Planned w;
  const PlannedPlacements plans = plan_run(w.run, w.chain, w.options);
  const PlacementFile file = placement_file(w.run, w.chain, plans);
  CHECK(file.ranks == world_size());
  CHECK(file.models ==
        std::vector<std::string>{"policy", "critic", "reference", "reward model preferred"});
  const RunOptions run = placed(w.run, file.settings);
  const Placement placement = place(run.placement, run.models(), w.chain);
  CHECK(to_string(placement.policy) == setting(plans.found.front(), "Placement/Policy"));
  CHECK(to_string(placement.scoring[1]) == setting(plans.found.front(), "Rewards/preferred/Ranks"));
}

TEST_CASE("a run trains with a plan for it, and refuses one for another run") {
  Planned w;
  if (w.ranks.rank() == 0) {
    PlacementFile file = placement_file(w.run, w.chain, plan_run(w.run, w.chain, w.options));
    write_placement_file(w.scratch / "plan.yaml", file);
    file.models.pop_back();
    write_placement_file(w.scratch / "other.yaml", file);
  }
  barrier(w.ranks.world());
  RunOptions run = placed(w.run, read_placement_file(w.scratch / "plan.yaml").settings);
  run.placement.strategy = PlacementStrategy::kPlan;
  run.placement.file = (w.scratch / "plan.yaml").string();
  CHECK_NOTHROW(w.make()(run));
  run.placement.file = (w.scratch / "other.yaml").string();
  CHECK_THROWS_MATCHES(w.make()(run), Error,
                       MessageMatches(ContainsSubstring("a plan for the models policy, critic")));
}

TEST_CASE("placements are tried by training with them, and leave nothing behind") {
  Planned w;
  PlannedPlacements plans = plan_run(w.run, w.chain, w.options);
  drop_too_large(plans, w.run, w.ranks, w.options, w.make());
  CHECK(plans.found.front().rank_bytes > (16 << 20));
  const auto place = w.scratch / "trial";
  const RunOptions run = placed(w.run, plans.found.front().settings);
  const auto seconds = time_placement(run, w.ranks, w.make(), place, 3);
  REQUIRE(seconds);
  CHECK(*seconds > 0);
  CHECK_FALSE(std::filesystem::exists(place));
}

TEST_CASE("placements that need more than is allowed are dropped, the best that fits stays") {
  Planned w;
  PlannedPlacements plans = plan_run(w.run, w.chain, w.options);
  PlannedPlacements all = plans;
  drop_too_large(all, w.run, w.ranks, w.options, w.make());
  CHECK(all.found.size() == plans.found.size());
  // The one that needs most comes first, and no more is allowed than the smallest one needs.
  std::vector<std::int64_t> bytes;
  for (const PlannedPlacement& p : plans.found)
    CHECK(memory_problem(placed(w.run, p.settings), w.ranks, w.make(), bytes.emplace_back()) == "");
  const auto most = std::max_element(bytes.begin(), bytes.end()) - bytes.begin();
  std::swap(plans.found.front(), plans.found[static_cast<std::size_t>(most)]);
  std::swap(bytes.front(), bytes[static_cast<std::size_t>(most)]);
  const auto smallest = std::min_element(bytes.begin(), bytes.end()) - bytes.begin();
  CHECK((smallest > 0) == (world_size() > 1));
  w.options.memory_gib =
      (static_cast<double>(bytes[static_cast<std::size_t>(smallest)]) + 0.5) / (1 << 30);
  all = plans;
  drop_too_large(all, w.run, w.ranks, w.options, w.make());
  if (w.ranks.rank() == 0) {
    CHECK(all.found.size() == plans.found.size() - static_cast<std::size_t>(smallest));
    CHECK(all.found.front().settings == plans.found[static_cast<std::size_t>(smallest)].settings);
    CHECK(all.found.front().name == "1");
  }
  w.options.memory_gib = 1e-4;  // after a search that did not know of it
  CHECK_THROWS_MATCHES(drop_too_large(plans, w.run, w.ranks, w.options, w.make()), Error,
                       MessageMatches(ContainsSubstring("placements fits in memory")));
}

TEST_CASE("a profile of another machine or network is refused with what differs") {
  Planned w;
  w.options.here = read_profile(w.options.profiles.front()).identity;
  CHECK_NOTHROW(plan_run(w.run, w.chain, w.options));
  w.options.here->transport["UCX_TLS"] = "other";
  CHECK_THROWS_MATCHES(plan_run(w.run, w.chain, w.options), Error,
                       MessageMatches(ContainsSubstring("UCX_TLS")));
  w.options.here->transport.erase("UCX_TLS");
  w.options.here->model["dtype"] = "f32";
  CHECK_THROWS_MATCHES(
      plan_run(w.run, w.chain, w.options), Error,
      MessageMatches(ContainsSubstring("dtype 'bf16' (here it is 'f32'; --dtype of")));
}

TEST_CASE("the plan is that of the policy's profile, in whatever order profiles are named") {
  Planned w;
  if (w.ranks.rank() == 0) {
    LatencyProfile other = profile_by_rows({1, 2});
    other.identity.model["hidden"] = "128";
    write_profile(w.scratch / "other.h5", other);
  }
  barrier(w.ranks.world());
  w.options.profiles.insert(w.options.profiles.begin(), (w.scratch / "other.h5").string());
  CHECK(plan_run(w.run, w.chain, w.options).identity.model.at("hidden") == "256");
}

TEST_CASE("models that work early on the same ranks are placed at one degree") {
  Planned w;
  w.run.training.early_scoring = true;
  w.options.search.top = 1000;
  const auto at = [](const PlannedPlacement& p, const std::string& name) {
    return *find_model_ranks(setting(p, name));
  };
  const PlannedPlacements plans = plan_run(w.run, w.chain, w.options);
  REQUIRE_FALSE(plans.found.empty());
  for (const PlannedPlacement& p : plans.found) {
    const ModelRanks reference = at(p, "Placement/Reference"), critic = at(p, "Placement/Critic");
    if (reference.ranks.overlaps(critic.ranks)) CHECK(reference.grid->tp == critic.grid->tp);
  }
  w.run.training.early_scoring = false;
  CHECK((plan_run(w.run, w.chain, w.options).found.size() > plans.found.size()) ==
        (world_size() > 1));
}

TEST_CASE("what a plan would contradict, or has other lengths, is refused") {
  Planned w;
  w.run.rollout.layout = "1x1";
  CHECK_THROWS_MATCHES(plan_run(w.run, w.chain, w.options), Error,
                       MessageMatches(ContainsSubstring("Rollout/Layout is 1x1")));
}

TEST_CASE("memory that no placement fits in is an error") {
  Planned w;
  w.options.memory_gib = 1e-6;
  CHECK_THROWS_MATCHES(plan_run(w.run, w.chain, w.options), Error,
                       MessageMatches(ContainsSubstring("no placement of the models fits")));
  w.options.profiles.clear();
  CHECK_THROWS_MATCHES(plan_run(w.run, w.chain, w.options), Error,
                       MessageMatches(ContainsSubstring("--profile")));
}
