// SPDX-License-Identifier: Apache-2.0
//
// Training runs whose models are on different ranks.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>

#include "base/Random.hpp"
#include "io/Hdf5File.hpp"
#include "support/RewardDirectory.hpp"
#include "train/TrainRuns.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

// PPO with five models: policy and critic learn, a reference and two reward models score.
struct FiveModels : TrainRuns {
  FiveModels() {
    make_model(ranks, path("model"));
    if (ranks.rank() == 0) write_reward_model(path("model"), {}, path("reward"));
    barrier(ranks.world());
  }

  RunOptions options(const std::string& output) const {
    RunOptions o = small_run(path("model"), path(output));
    o.experience.advantage.estimator = AdvantageEstimator::kGae;
    o.experience.kl.coef = 0.05;
    o.critic.schedule.peak = 1e-3;
    o.checkpoint.every = 0;
    o.evaluation.every = 1;
    o.evaluation.prompts = 3;
    for (const char* name : {"preferred", "second"}) {
      RewardOptions& reward = o.rewards.emplace_back();
      reward.name = name;
      reward.kind = RewardKind::kModel;
      reward.model.directory = path("reward");
    }
    return o;
  }

  // Rollouts but for who made them; a reward that is missing is a number that equals itself.
  std::vector<RolloutRecord> made(const std::string& output, int n) const {
    std::vector<RolloutRecord> records = rollouts(output, n);
    for (RolloutRecord& r : records) {
      r.layout.clear();
      for (float& reward : r.rewards)
        if (std::isnan(reward)) reward = -1e30f;
    }
    return records;
  }
  // Everything that the last iteration of a run has made: critic and policy, samples with rewards,
  // reference log-probs and values; and the losses.
  void check_equal(const std::string& expected, const std::string& output, int n) const {
    barrier(ranks.world());
    const bool same_policy = weights(expected, n) == weights(output, n);
    CHECK(same_policy);
    const auto critic = [&](const std::string& run) {
      return slurp(path(run) + "/checkpoints/iter_00000" + std::to_string(n) +
                   "/critic/model.safetensors");
    };
    const bool same_critic = critic(expected) == critic(output);
    CHECK(same_critic);
    for (int i = 1; i <= n; ++i) {
      const bool same_rollouts = made(expected, i) == made(output, i);
      CHECK(same_rollouts);
    }
    if (ranks.rank() != 0) return;
    for (int i = 1; i <= n; ++i)
      for (const auto& [name, value] : metrics(expected, i))
        if (name.starts_with("actor/") || name.starts_with("critic/") ||
            name.starts_with("reward/") || name.starts_with("val/")) {
          if (name.find("latency") != std::string::npos) continue;
          INFO(output << ", iteration " << i << ": " << name);
          CHECK(metrics(output, i).at(name) == value);
        }
  }

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
  FiveModels f;
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
  const auto train = [&](const RunOptions& options) {
    TrainJob(options, "test", f.ranks, StopRequest(), &spawner)
        .run(find_resume_point(f.ranks, "none", options.output));
  };
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
