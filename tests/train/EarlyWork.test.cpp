// SPDX-License-Identifier: Apache-2.0
//
// Training runs in which ranks work at what has ended while others generate.
#include "train/EarlyWork.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "train/FiveModels.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

// Most responses are short and a few long: whoever has none of these waits.
void set_straggler(RunOptions& o) {
  o.rollout.prompts = 8;
  o.rollout.max_new_tokens = 256;
  o.rollout.lengths = "straggler";
  o.training.max_tokens = 512;
  o.checkpoint.every = 0;
}

struct EarlyRuns : FiveModels {
  RunOptions learning(const std::string& output) const {
    RunOptions o = small_run(path("model"), path(output));
    set_straggler(o);
    o.training.early_learning = true;
    o.training.bundle_tokens = 128;
    o.training.mini_batches = 1;
    return o;
  }
  RunOptions scoring(const std::string& output) const {
    RunOptions o = options(output);
    set_straggler(o);
    o.training.early_scoring = true;
    o.evaluation.every = 0;
    return o;
  }
  void add_model_and_command(RunOptions& o) const {
    RewardOptions& model = o.rewards.emplace_back();
    model.name = "preferred";
    model.kind = RewardKind::kModel;
    model.weight = 0.5;
    model.model.directory = path("reward");
    RewardOptions& judge = o.rewards.emplace_back();
    judge.name = "judge";
    judge.kind = RewardKind::kCommand;
    judge.command.command = {TAPER_GOLDEN_DIR "/../reward/worker.sh", "first"};
    judge.command.on_error = OnError::kDrop;  // the first sample of each prompt
  }
  void train(const RunOptions& o) {
    TrainJob(o, "test", ranks, StopRequest(), &spawner)
        .run(find_resume_point(ranks, "none", o.output));
  }

  void check_learned_alike(const std::string& expected, const std::string& output) const {
    barrier(ranks.world());
    const bool same_weights = weights(expected, 2) == weights(output, 2);
    CHECK(same_weights);
    if (ranks.rank() != 0) return;
    for (int i = 1; i <= 2; ++i)
      for (const auto& [name, value] : metrics(expected, i)) {
        if (name.find("latency") != std::string::npos || name == "actor/early_token_share")
          continue;
        if (!name.starts_with("actor/") && !name.starts_with("reward/")) continue;
        INFO(output << ", iteration " << i << ": " << name);
        CHECK(metrics(output, i).at(name) == value);
      }
  }

  // Of rank 0.
  double share(const std::string& output, const std::string& name) const {
    return metrics(output, 2).at(name);
  }

  Spawner spawner;
};

constexpr const char* kLearned = "actor/early_token_share";
constexpr const char* kScored = "rollout/early_score_share";

}  // namespace

TEST_CASE("when and where prompts are learned from changes no bit") {
  EarlyRuns f;
  for (const int mini_batches : {1, 3}) {
    INFO(mini_batches << " mini-batches");
    const std::string suffix = std::to_string(mini_batches);
    const auto run_as = [&](const std::string& name, const auto& set) {
      RunOptions o = f.learning(name + suffix);
      o.training.mini_batches = mini_batches;
      set(o);
      run(f.ranks, o);
      f.check_learned_alike("alone" + suffix, name + suffix);
    };
    // One rank has nobody to wait for.
    run_as("alone", [](RunOptions& o) { o.placement.policy = o.placement.generation = "0-0"; });
    if (f.ranks.rank() == 0) CHECK(f.share("alone" + suffix, kLearned) == 0.0);
    run_as("flat", [](RunOptions&) {});
    if (f.ranks.size() == 1) continue;
    run_as("apart", [](RunOptions& o) { o.placement.strategy = PlacementStrategy::kSeparation; });
    if (f.ranks.rank() == 0) CHECK(f.share("apart" + suffix, kLearned) > 0.0);
    if (f.ranks.size() % 2 != 0) continue;
    run_as("split", [](RunOptions& o) { o.training.tp = 2; });
    run_as("grouped", [](RunOptions& o) { o.training.tp = o.rollout.tp = 2; });
  }
}

TEST_CASE("prompts that models and commands judge are learned from early, without a changed bit") {
  EarlyRuns f;
  double learned = 0.0;
  for (const KlPlace place : {KlPlace::kReward, KlPlace::kLoss}) {
    const std::string suffix = place == KlPlace::kReward ? "-reward" : "-loss";
    const auto run_as = [&](const std::string& name, const auto& set) {
      INFO(name << suffix);
      RunOptions o = f.learning(name + suffix);
      f.add_model_and_command(o);
      o.rollout.max_new_tokens = 400;  // takes long enough for something to be early
      o.rollout.max_running = 1;
      o.training.max_tokens = 1024;
      o.experience.kl.coef = 0.05;
      o.experience.kl.place = place;
      o.evaluation.every = 0;
      set(o);
      f.train(o);
      f.check_learned_alike("alone" + suffix, name + suffix);
    };
    run_as("alone", [](RunOptions& o) {
      o.placement.policy = o.placement.generation = o.placement.reference = "0-0";
      o.rewards.front().model.ranks = "0-0";
    });
    if (f.ranks.rank() == 0) CHECK(f.share("alone" + suffix, kScored) == 0.0);
    run_as("flat", [](RunOptions&) {});
    if (f.ranks.size() == 1) continue;
    const std::string last = std::to_string(f.ranks.size() - 1);
    run_as("apart", [&](RunOptions& o) {
      o.placement.generation = "0-0";
      o.placement.policy = o.placement.reference = o.rewards.front().model.ranks =
          last + "-" + last;
    });
    if (f.ranks.rank() == 0) {
      CHECK(f.share("apart" + suffix, kScored) > 0.0);
      learned += f.share("apart" + suffix, kLearned);
    }
    if (f.ranks.size() % 2 == 0) run_as("split", [](RunOptions& o) { o.training.tp = 2; });
  }
  if (f.ranks.rank() == 0 && f.ranks.size() > 1) CHECK(learned > 0.0);
}

TEST_CASE("when and where models score changes no bit") {
  EarlyRuns f;
  RunOptions plain = f.scoring("plain");
  plain.training.early_scoring = false;
  run(f.ranks, plain);
  const auto run_as = [&](const std::string& name, const auto& set) {
    INFO(name);
    RunOptions o = f.scoring(name);
    set(o);
    run(f.ranks, o);
    f.check_equal("plain", name, 2);
  };
  run_as("flat", [](RunOptions&) {});
  run_as("again", [](RunOptions& o) { o.placement.strategy = PlacementStrategy::kSeparation; });
  if (f.ranks.size() == 1) return;
  run_as("apart", [&](RunOptions& o) {
    const std::string last = std::to_string(f.ranks.size() - 1);
    o.placement.generation = o.placement.policy = "0-0";
    o.placement.critic = o.placement.reference = last + "-" + last;
    for (RewardOptions& reward : o.rewards) reward.model.ranks = last + "-" + last;
  });
  if (f.ranks.rank() == 0) CHECK(f.share("apart", kScored) > 0.0);
}

TEST_CASE("models score early in rounds that draw prompts again or put them off") {
  EarlyRuns f;
  const auto check = [&](const std::string& name, const auto& change) {
    INFO(name);
    for (const bool early : {false, true}) {
      RunOptions o = f.scoring(name + (early ? "-early" : "-plain"));
      o.training.early_scoring = early;
      change(o);
      run(f.ranks, o);
    }
    f.check_equal(name + "-plain", name + "-early", 2);
  };
  check("dynamic", [](RunOptions& o) {
    o.dynamic.on = true;
    o.dynamic.max_rounds = 2;
  });
  check("rounds", [](RunOptions& o) { o.rollout.rounds = {RoundMode::kTail, 1.5, 1.0}; });
}

TEST_CASE("a run that learns early and is resumed has the bits of one that is not") {
  EarlyRuns f;
  RunOptions options = f.learning("");
  options.checkpoint.every = 1;
  f.run_straight_and_in_parts(options);
}

TEST_CASE("models that work early and share ranks have replicas of the same ranks") {
  EarlyRuns f;
  if (f.ranks.size() % 2 != 0) return;
  RunOptions options = f.scoring("run");
  options.rewards.front().model.tp = 2;
  CHECK_THROWS_MATCHES(TrainJob(options, "test", f.ranks, StopRequest()), Error,
                       MessageMatches(ContainsSubstring("Training/Early Scoring is on") &&
                                      ContainsSubstring("the reward model preferred (2)")));
}
