// SPDX-License-Identifier: Apache-2.0
//
// Training runs whose models are on different ranks.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Random.hpp"
#include "io/Hdf5File.hpp"
#include "train/FiveModels.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

struct PlacedModels : FiveModels {
  // A random node of the tree of ranks that begins at `first`, or anywhere.
  std::string draw(RandomStream& random, bool at_zero = false) const {
    const auto& degrees = ranks.chain.degrees();
    const int size = degrees[random.below(degrees.size())];
    const int first = at_zero ? 0 : static_cast<int>(random.below(ranks.size() / size)) * size;
    std::vector<int> tps;
    for (const int tp : degrees)
      if (tp <= std::min(size, 2)) tps.push_back(tp);  // the model has two KV heads
    const int tp = tps[random.below(tps.size())];
    return std::to_string(first) + "-" + std::to_string(first + size - 1) + ":" +
           to_string(RankGrid{tp, size / tp});
  }
};

}  // namespace

TEST_CASE("every strategy trains the same bits, and records who did what") {
  FiveModels f;
  run(f.ranks, f.options("flat"));
  for (const auto& [name, strategy] : {std::pair("interleaving", PlacementStrategy::kInterleaving),
                                       std::pair("separation", PlacementStrategy::kSeparation)}) {
    INFO(name);
    RunOptions options = f.options(name);
    options.placement.strategy = strategy;
    run(f.ranks, options);
    f.check_equal("flat", name, 2);
  }
  if (f.ranks.rank() != 0) return;
  const auto calls = [&](const std::string& output) {
    const Hdf5File file = Hdf5File::open_read(f.path(output) + "/run.h5");
    return file.exists("/calls/call") ? file.read_strings("/calls/call")
                                      : std::vector<std::string>{};
  };
  CHECK(calls("flat").empty());
  if (world_size() == 1) return;
  const std::vector<std::string> separated = calls("separation");
  for (const char* call : {"gen", "reward_model", "ref", "values", "update_critic", "update_actor"})
    CHECK(std::count(separated.begin(), separated.end(), call) ==
          (std::string(call) == "reward_model" ? 4 : 2));
}

TEST_CASE("models on any ranks train the same bits") {
  PlacedModels f;
  run(f.ranks, f.options("flat"));
  RandomStream random(7, RandomPurpose::kTest, 0, 0);
  for (int i = 0; i < (world_size() == 1 ? 1 : 7); ++i) {
    const std::string output = "placed" + std::to_string(i);
    RunOptions options = f.options(output);
    options.placement.policy = f.draw(random);
    options.placement.generation = f.draw(random, true);
    options.placement.reference = f.draw(random);
    options.placement.critic = f.draw(random);
    for (RewardOptions& reward : options.rewards) reward.model.ranks = f.draw(random);
    INFO("policy " << options.placement.policy << ", generation " << options.placement.generation
                   << ", reference " << options.placement.reference << ", critic "
                   << options.placement.critic << ", rewards " << options.rewards[0].model.ranks
                   << " and " << options.rewards[1].model.ranks);
    run(f.ranks, options);
    f.check_equal("flat", output, 2);
  }
}

TEST_CASE("placed runs draw prompts again, put prompts off and drop responses like others") {
  FiveModels f;
  if (!f.ranks.chain.has(2) && world_size() > 1) return;
  Spawner spawner;
  const auto train = [&](const RunOptions& options) { run(f.ranks, options, "none", &spawner); };
  const auto check = [&](const std::string& name, const auto& change) {
    INFO(name);
    RunOptions flat = f.options(name + "-flat"), placed = f.options(name + "-placed");
    placed.placement.strategy = PlacementStrategy::kSeparation;
    // One reward model in replicas of all ranks, which leaves its samples there.
    placed.rewards[0].model.ranks =
        "0-" + std::to_string(world_size() - 1) + ":" +
        to_string(RankGrid{std::min(2, world_size()), std::max(1, world_size() / 2)});
    for (RunOptions* options : {&flat, &placed}) {
      change(*options);
      train(*options);
    }
    f.check_equal(name + "-flat", name + "-placed", 2);
  };
  check("dynamic", [](RunOptions& o) {
    o.dynamic.on = true;
    o.dynamic.max_rounds = 2;
  });
  check("rounds", [](RunOptions& o) { o.rollout.rounds = {RoundMode::kTail, 1.5, 1.0}; });
  check("dropped", [](RunOptions& o) {
    RewardOptions& judge = o.rewards.emplace_back();
    judge.name = "judge";
    judge.kind = RewardKind::kCommand;
    judge.command.command = {TAPER_GOLDEN_DIR "/../reward/worker.sh", "first"};
    judge.command.on_error = OnError::kDrop;
    o.evaluation.every = 0;  // its responses are all first samples, which this worker never scores
  });
}

TEST_CASE("a run goes on where its models are on other ranks") {
  FiveModels f;
  RunOptions options = f.options("straight");
  run(f.ranks, options);
  options.output = f.path("moved");
  options.training.iterations = 1;
  options.placement.strategy = PlacementStrategy::kSeparation;
  run(f.ranks, options);
  options.training.iterations = 2;
  options.placement.strategy = PlacementStrategy::kInterleaving;
  run(f.ranks, options, "auto");
  f.check_equal("straight", "moved", 2);
}

TEST_CASE("ranks that cannot be are refused before anything is written") {
  FiveModels f;
  RunOptions options = f.options("run");
  options.placement.reference = "0-63";
  CHECK_THROWS_MATCHES(TrainJob(options, "test", f.ranks, StopRequest()), Error,
                       MessageMatches(ContainsSubstring("Placement/Reference is 0-63")));
  CHECK_FALSE(std::filesystem::exists(f.path("run")));
  options.placement.reference = "x";
  options.experience.kl.coef = 0.0;
  options.experience.advantage.estimator = AdvantageEstimator::kGrpo;
  options.placement.critic = "0-0";
  options.rewards.front().model.ranks = "0-";
  const auto has = [&](const std::string& words) {
    const auto problems = options.problems();
    return std::any_of(problems.begin(), problems.end(), [&](const std::string& problem) {
      return problem.find(words) != std::string::npos;
    });
  };
  CHECK(has("Placement/Reference is 'x'"));
  CHECK(has("there is no reference model"));
  CHECK(has("has no critic"));
  CHECK(has("Rewards/preferred/Ranks is '0-'"));
  options.balance.mode = BalanceMode::kOn;
  options.training.exactness = Exactness::kRun;
  CHECK(has("Balance/Mode is on"));
  if (world_size() == 1) return;
  // Rollout/Layout is that of the ranks that generate.
  RunOptions apart = f.options("apart");
  apart.placement.generation = "0-0";
  apart.rollout.layout = to_string(RankGrid{1, world_size()});
  CHECK_THROWS_MATCHES(TrainJob(apart, "test", f.ranks, StopRequest()), Error,
                       MessageMatches(ContainsSubstring("Rollout/Layout is")));
}
