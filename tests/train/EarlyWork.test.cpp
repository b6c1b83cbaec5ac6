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
  // Calls train(output), on all ranks, until a share is above 0: on a busy machine a generation may
  // end before other ranks have got to work.
  template <class Train>
  void until_early(const std::string& name, const char* what, const Train& train) const {
    for (int attempt = 0; attempt < 20; ++attempt) {
      const std::string output = name + "-" + std::to_string(attempt);
      train(output);
      std::vector<std::int32_t> found{ranks.rank() == 0 && share(output, what) > 0.0 ? 1 : 0};
      all_reduce_max(ranks.world(), found);
      if (found.front() != 0) return;
    }
    FAIL(name << ": " << what << " is 0 in 20 runs");
  }
  std::string last() const {
    const std::string rank = std::to_string(ranks.size() - 1);
    return rank + "-" + rank;
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
    f.until_early("apart" + suffix, kLearned, [&](const std::string& output) {
      RunOptions o = f.learning(output);
      o.training.mini_batches = mini_batches;
      o.placement.strategy = PlacementStrategy::kSeparation;
      run(f.ranks, o);
      f.check_learned_alike("alone" + suffix, output);
    });
    if (f.ranks.size() % 2 != 0) continue;
    run_as("split", [](RunOptions& o) { o.training.tp = 2; });
    run_as("grouped", [](RunOptions& o) { o.training.tp = o.rollout.tp = 2; });
  }
}

TEST_CASE("prompts that models and commands judge are learned from early, without a changed bit") {
  EarlyRuns f;
  for (const KlPlace place : {KlPlace::kReward, KlPlace::kLoss}) {
    const std::string suffix = place == KlPlace::kReward ? "-reward" : "-loss";
    const auto run_as = [&](const std::string& output, const auto& set) {
      INFO(output);
      RunOptions o = f.learning(output);
      f.add_model_and_command(o);
      o.rollout.max_running = 1;  // a generation takes long
      o.experience.kl.coef = 0.05;
      o.experience.kl.place = place;
      o.evaluation.every = 0;
      set(o);
      run(f.ranks, o, "none", &f.spawner);
      f.check_learned_alike("alone" + suffix, output);
    };
    run_as("alone" + suffix, [](RunOptions& o) {
      o.placement.policy = o.placement.generation = o.placement.reference = "0-0";
      o.rewards.front().model.ranks = "0-0";
    });
    if (f.ranks.rank() == 0) CHECK(f.share("alone" + suffix, kScored) == 0.0);
    run_as("flat" + suffix, [](RunOptions&) {});
    if (f.ranks.size() == 1) continue;
    f.until_early("apart" + suffix, kLearned, [&](const std::string& output) {
      run_as(output, [&](RunOptions& o) {
        o.placement.generation = "0-0";
        o.placement.policy = o.placement.reference = o.rewards.front().model.ranks = f.last();
      });
    });
    if (f.ranks.size() % 2 == 0) run_as("split" + suffix, [](RunOptions& o) { o.training.tp = 2; });
  }
}

TEST_CASE("when and where models score changes no bit") {
  EarlyRuns f;
  RunOptions plain = f.scoring("plain");
  plain.training.early_scoring = false;
  run(f.ranks, plain);
  const auto run_as = [&](const std::string& output, const auto& set) {
    INFO(output);
    RunOptions o = f.scoring(output);
    set(o);
    run(f.ranks, o);
    f.check_equal("plain", output, 2);
  };
  const auto put_all = [](RunOptions& o, const std::string& where) {
    o.placement.critic = o.placement.reference = where;
    for (RewardOptions& reward : o.rewards) reward.model.ranks = where;
  };
  run_as("flat", [](RunOptions&) {});
  run_as("separation",
         [](RunOptions& o) { o.placement.strategy = PlacementStrategy::kSeparation; });
  if (f.ranks.size() == 1) return;
  f.until_early("apart", kScored, [&](const std::string& output) {
    run_as(output, [&](RunOptions& o) {
      o.placement.generation = o.placement.policy = "0-0";
      put_all(o, f.last());
    });
  });
  if (f.ranks.size() % 2 != 0) return;
  run_as("grouped", [](RunOptions& o) { o.rollout.tp = 2; });
  // One of the ranks of a replica generates.
  run_as("astride", [&](RunOptions& o) {
    o.placement.generation = "0-0";
    o.placement.policy = "0-1:2x1";
    put_all(o, "0-1:2x1");
  });
}

TEST_CASE("models score early in rounds that draw prompts again or put them off") {
  EarlyRuns f;
  const auto check = [&](const std::string& name, const auto& change) {
    INFO(name);
    const auto train = [&](const std::string& output, bool early) {
      RunOptions o = f.scoring(output);
      o.training.early_scoring = early;
      o.placement.generation = "0-0";
      o.placement.reference = f.last();
      for (RewardOptions& reward : o.rewards) reward.model.ranks = f.last();
      change(o);
      run(f.ranks, o);
    };
    train(name + "-plain", false);
    const auto train_early = [&](const std::string& output) {
      train(output, true);
      f.check_equal(name + "-plain", output, 2);
    };
    if (f.ranks.size() > 1)
      f.until_early(name, kScored, train_early);
    else
      train_early(name);
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

TEST_CASE("models that have no chance to work early are named") {
  const auto warnings = [](const RunOptions& o, int ranks) {
    return early_work_warnings(o, place(o.placement, o.models(), DivisorChain::of(ranks)), ranks);
  };
  RunOptions o;
  CHECK(warnings(o, 2).empty());
  o.training.early_scoring = true;
  REQUIRE(warnings(o, 2).size() == 1);
  CHECK_THAT(warnings(o, 2).front(), ContainsSubstring("no model scores"));
  o.experience.kl.coef = 0.1;
  CHECK(warnings(o, 2).empty());
  o.placement.strategy = PlacementStrategy::kSeparation;
  REQUIRE(warnings(o, 2).size() == 1);
  CHECK_THAT(warnings(o, 2).front(), ContainsSubstring("set Placement/Reference"));
  CHECK(warnings(o, 4).empty());
  o.training.early_learning = true;
  o.placement.policy = "0";
  REQUIRE(warnings(o, 2).size() == 2);
  CHECK_THAT(warnings(o, 2).back(), ContainsSubstring("set Placement/Policy"));
}
