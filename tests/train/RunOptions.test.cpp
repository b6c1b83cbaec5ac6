// SPDX-License-Identifier: Apache-2.0
#include "train/RunOptions.hpp"

#include <catch2/catch_test_macros.hpp>

#include "param/ParamFile.hpp"
#include "support/Problems.hpp"
#include "train/RunOptions_params.hpp"

using namespace taper;
using taper::test::check_problem;

TEST_CASE("the defaults have no problems") {
  CHECK(RunOptions().problems().empty());
}

TEST_CASE("a critic has from the policy what it has not of its own, and its settings are checked") {
  RunOptions o;
  const auto problems = [&](const std::string& critic, const std::string& estimator = "gae") {
    o = {};
    param::Schema schema;
    describe(schema, o);
    return schema.read_and_list_problems(param::ParamFile::parse(
        "Model: {Directory: m}\nTraining: {Tensor Parallel: 4, Mini Batches: 3, Epochs: 2}\n"
        "Algorithm: {Estimator: " +
            estimator + "}\nCritic: {" + critic + "}",
        "run.yaml"));
  };
  CHECK(problems("").empty());
  CHECK(o.has_critic());
  CriticOptions used = o.critic_in_use();
  CHECK(used.directory == "m");
  CHECK((used.tp == 4 && used.mini_batches == 3 && used.epochs == 2));
  CHECK(used.schedule.peak == 1e-5);
  CHECK(problems("Model Directory: c, Tensor Parallel: 2, Mini Batches: 1, Epochs: 5").empty());
  used = o.critic_in_use();
  CHECK(used.directory == "c");
  CHECK((used.tp == 2 && used.mini_batches == 1 && used.epochs == 5));
  check_problem(problems("Mini Batches: 17"), {"Critic/Mini Batches is 17", "Rollout/Prompts 16"});
  check_problem(problems("Schedule: cosine"),
                {"Critic/Total Steps is 0", "Critic/Schedule cosine"});
  check_problem(problems("Value Clip: -1"), {"Critic/Value Clip", "at least 0"});
  check_problem(problems("Model Directory: c", "grpo"),
                {"Critic/Model Directory is set", "has no critic"});
  CHECK(problems("Tensor Parallel: 2", "grpo").empty());
  CHECK(!o.has_critic());
  CHECK(o.critic_in_use().tp == 4);  // or the run would need groups of that size
}

TEST_CASE("a run file is read with what its preset sets") {
  RunOptions o;
  param::Schema schema;
  describe(schema, o);
  const AppliedPreset preset =
      read_run(schema, param::ParamFile::parse("Model: {Directory: m}\nAlgorithm: {Preset: ppo}\n"
                                               "Critic: {Model Directory: c, Value Clip: 0}",
                                               "run.yaml"));
  CHECK(preset.name == "ppo");
  CHECK(o.has_critic());  // or its directory would be a mistake
  CHECK(o.critic.directory == "c");
  CHECK(o.critic.clip == 0.0);  // the file's own goes before the preset's
}

TEST_CASE("rollouts that cannot teach are refused") {
  const auto problems = [](const std::string& rollout, const std::string& estimator = "grpo") {
    RunOptions o;
    param::Schema schema;
    describe(schema, o);
    return schema.read_and_list_problems(
        param::ParamFile::parse("Model: {Directory: m}\nRollout: {" + rollout +
                                    "}\nAlgorithm: {Estimator: " + estimator + "}",
                                "run.yaml"));
  };
  check_problem(problems("Samples Per Prompt: 1"), {"Rollout/Samples Per Prompt is 1", "raise it"});
  check_problem(problems("Samples Per Prompt: 1", "rloo"), {"Rollout/Samples Per Prompt is 1"});
  CHECK(problems("Samples Per Prompt: 1", "reinforce++").empty());
  CHECK(problems("Samples Per Prompt: 1", "gae").empty());
  check_problem(problems("Samples Per Prompt: 0"), {"Rollout/Samples Per Prompt", "at least 1"});
  check_problem(problems("Temperature: 0"), {"Rollout/Temperature is 0", "above 0"});
  CHECK(problems("Samples Per Prompt: 2, Temperature: 0.1").empty());
}

TEST_CASE("a reward rule must fit the prompts") {
  RunOptions o;
  o.rule = RewardRule::kBoxed;
  check_problem(o.problems(), {"Data/Reward Rule", "Data/Prompts"});
  o.data.prompts = {"prompts.jsonl"};
  CHECK(o.problems().empty());
  o.rule = RewardRule::kTask;
  check_problem(o.problems(), {"Data/Prompts", "Data/Reward Rule"});
  o.data.task = "chess";
  check_problem(o.data.problems(), {"Data/Task", "chess", "collatz"});
}

TEST_CASE("rewards are read by name, kind and weight, in the order of the file") {
  RunOptions o;
  param::Schema schema;
  describe(schema, o);
  schema.read(param::ParamFile::parse(R"(
Model: {Directory: m}
Rollout: {Max New Tokens: 100}
Rewards:
  right: {Kind: task}
  short:
    Weight: 0.5
    Kind: overlong
    Buffer: 20
  judge: {Kind: command, Command: [python3, judge.py], On Error: drop, Components: [style]}
  tests: {Kind: command, Command: [run], On Error: zero, Adaptive Timeout: {Factor: 2}}
)",
                                      "run.yaml"));
  const auto rewards = o.judged_by();
  REQUIRE(rewards.size() == 4);
  CHECK(rewards[0].name == "right");
  CHECK(rewards[0].kind == RewardKind::kTask);
  CHECK(rewards[0].weight == 1.0);
  CHECK(rewards[1].weight == 0.5);
  CHECK(rewards[1].overlong.buffer == 20);
  CHECK(rewards[1].overlong.limit == 100);  // the longest response
  CHECK(rewards[2].command.command == std::vector<std::string>{"python3", "judge.py"});
  CHECK(rewards[2].command.on_error == OnError::kDrop);
  CHECK(!rewards[2].adaptive_timeout.on);
  CHECK(rewards[3].adaptive_timeout.on);
  CHECK(rewards[3].adaptive_timeout.factor == 2.0);
  CHECK(rewards[3].adaptive_timeout.most == 30.0);

  // What a run records of its parameters says the same.
  RunOptions again;
  param::Schema second;
  describe(second, again);
  second.read(param::ParamFile::parse(schema.current_yaml(), "run.yaml"));
  CHECK(second.current_yaml() == schema.current_yaml());
  CHECK(again.rewards.size() == 4);
  CHECK(!again.rewards[2].adaptive_timeout.on);
  CHECK(again.rewards[3].adaptive_timeout.on);
}

TEST_CASE("without rewards the rule of the data judges alone") {
  RunOptions o;
  o.rule = RewardRule::kBoxed;
  REQUIRE(o.judged_by().size() == 1);
  CHECK(o.judged_by().front().name == "score");
  CHECK(o.judged_by().front().kind == RewardKind::kBoxed);
}

TEST_CASE("mistakes in rewards are named") {
  const auto problems = [](const std::string& rewards, const std::string& data = "Task: mix") {
    RunOptions o;
    param::Schema schema;
    describe(schema, o);
    return schema.read_and_list_problems(param::ParamFile::parse(
        "Model: {Directory: m}\nData: {" + data + "}\nRewards: {" + rewards + "}", "run.yaml"));
  };
  CHECK(problems("a: {Kind: task}").empty());
  check_problem(problems("a: {Weight: 1}"), {"Rewards/a/Kind is not set", "gsm8k-strict, gsm8k-f"});
  check_problem(problems("a: 3"), {"run.yaml line 3: Rewards/a is 3", "under each name"});
  check_problem(problems("a: {Kind: tusk}"), {"Rewards/a/Kind", "tusk", "task"});
  check_problem(problems("a: {Kind: task, Buffer: 3}"),
                {"Rewards/a/Buffer is unknown (section Rewards/a knows Kind, Weight)"});
  check_problem(problems("a: {Kind: task}, b: {Kind: command, Comand: [x], Command: [y]}"),
                {"Rewards/b/Comand is unknown", "did you mean Command?"});
  check_problem(problems("a b: {Kind: task}"), {"Rewards/a b has a name", "letters"});
  check_problem(problems("a: {Kind: format}"), {"Rewards/a/Markers is not set"});
  check_problem(problems("a: {Kind: format, Markers: [x, x]}"), {"Rewards/a/Markers has", "twice"});
  check_problem(problems("a: {Kind: command}"), {"Rewards/a/Command is not set"});
  check_problem(problems("a: {Kind: command, Command: [x], On Error: ignore}"),
                {"Rewards/a/On Error", "ignore", "fail, zero, drop"});
  check_problem(problems("a: {Kind: command, Command: [x], Components: ['']}"),
                {"Rewards/a/Components has ''"});
  const auto adaptive = [&](const std::string& values) {
    return problems("a: {Kind: command, Command: [x], On Error: zero, Adaptive Timeout: " + values +
                    "}");
  };
  CHECK(adaptive("{}").empty());
  check_problem(adaptive("{Factor: 0.9}"), {"Rewards/a/Adaptive Timeout/Factor is 0.9", "least 1"});
  check_problem(adaptive("{Least: 0}"), {"Rewards/a/Adaptive Timeout/Least is 0", "above 0"});
  check_problem(adaptive("{Most: -1}"), {"Rewards/a/Adaptive Timeout/Most is -1", "above 0"});
  check_problem(adaptive("{Most: 1}"), {"Rewards/a/Adaptive Timeout/Least is 2", "Most is 1"});
  check_problem(adaptive("{Most: 61}"), {"Rewards/a/Adaptive Timeout/Most is 61", "Timeout, 60"});
  check_problem(adaptive("{Fctor: 2}"), {"Rewards/a/Adaptive Timeout/Fctor is unknown", "Factor?"});
  check_problem(adaptive("3"), {"Rewards/a/Adaptive Timeout is 3", "a section with Factor"});
  check_problem(problems("a: {Kind: command, Command: [x], Adaptive Timeout: {}}"),
                {"Rewards/a/Adaptive Timeout", "Rewards/a/On Error fail", "zero or drop"});
  check_problem(problems("a: {Kind: command, Command: [x], Adaptiv Timeout: {}}"),
                {"Rewards/a/Adaptiv Timeout is unknown", "did you mean Adaptive Timeout?"});
  check_problem(problems("a: {Kind: task, Adaptive Timeout: {}}"),
                {"Rewards/a/Adaptive Timeout is unknown (section Rewards/a knows Kind, Weight)"});
  check_problem(problems("a: {Kind: overlong, Buffer: 5000}"),
                {"Rewards/a/Buffer is 5000", "limit of 1024"});
  check_problem(problems("a: {Kind: boxed}"), {"Rewards/a/Kind does not fit the in-tree tasks"});
  check_problem(problems("a: {Kind: task}", "Prompts: p.jsonl"),
                {"Rewards/a/Kind is task", "there are Data/Prompts"});
  check_problem(problems("a: {Kind: exact}", "Prompts: p.jsonl, Reward Rule: exact"),
                {"Data/Reward Rule and Rewards are both set"});
}

TEST_CASE("settings are named with their keys, values and sources") {
  const auto problems = [](const std::vector<std::string>& assignments) {
    RunOptions o;
    param::Schema schema;
    describe(schema, o);
    param::ParamFile file = param::ParamFile::parse("Model: {Directory: m}", "run.yaml");
    for (const auto& assignment : assignments) file.set(assignment);
    return schema.read_and_list_problems(file);
  };
  check_problem(problems({"Model/Directory="}),
                {"--set Model/Directory=: Model/Directory is not set", "name a run file"});
  check_problem(problems({"Rollout/Step Rows=10"}),
                {"--set Rollout/Step Rows=10: Rollout/Step Rows is 10 and Rollout/Max Running 64"});
  check_problem(problems({"Rollout/Max Running=1e9"}),
                {"--set Rollout/Max Running=1e9: Rollout/Max Running is 1.0e+09", "1048576"});
  check_problem(problems({"Rollout/Step Rows=99999999"}), {"Rollout/Step Rows is 99999999"});
  check_problem(problems({"Optimizer/Schedule=cosine"}),
                {"--set Optimizer/Schedule=cosine: Optimizer/Total Steps is 0"});
  check_problem(problems({"Algorithm/Policy Loss=gspo"}),
                {"--set Algorithm/Policy Loss=gspo: Algorithm/Loss Aggregation does not fit"});
  check_problem(problems({"Algorithm/KL In=reward"}),
                {"--set Algorithm/KL In=reward", "Algorithm/KL Coefficient is 0"});
  check_problem(
      problems({"Algorithm/Estimator=rloo", "Algorithm/Advantage Normalization=group"}),
      {"--set Algorithm/Advantage Normalization=group", "--set Algorithm/Estimator=rloo"});
  CHECK(problems({"Algorithm/Loss Aggregation=seq-mean-token-sum-norm"}).empty());
}

TEST_CASE("the loss in use has the KL and the length that other settings say") {
  RunOptions o;
  CHECK(o.loss_in_use().kl_coef == 0.0);
  o.experience.kl.coef = 0.2;
  o.experience.kl.estimator = KlEstimator::kK2;
  CHECK(o.loss_in_use().kl_coef == 0.2);
  CHECK(o.loss_in_use().kl == KlEstimator::kK2);
  o.experience.kl.place = KlPlace::kReward;
  CHECK(o.loss_in_use().kl_coef == 0.0);
  o.rollout.max_new_tokens = 77;
  CHECK(o.loss_in_use().length_norm == 77.0);
  o.loss.length_norm = 5.0;
  CHECK(o.loss_in_use().length_norm == 5.0);
}

TEST_CASE("settings of the algorithm that do not fit each other are refused") {
  RunOptions o;
  o.loss.kind = PolicyLossKind::kGspo;
  CHECK(o.problems().empty());
  o.experience.correction.weights = ImportanceLevel::kToken;
  check_problem(o.problems(), {"Algorithm/Importance Weights", "gspo"});
  o.experience.correction.weights = ImportanceLevel::kSequence;
  CHECK(o.problems().empty());
  o.experience.correction.rejection = RejectionLevel::kToken;
  check_problem(o.problems(), {"Algorithm/Rejection", "gspo"});
  o = {};
  o.rollout.samples = 1;
  o.experience.advantage.estimator = AdvantageEstimator::kReinforcePlusPlus;
  CHECK(o.problems().empty());
  o.dynamic.on = true;
  check_problem(o.problems(), {"Algorithm/Dynamic Sampling", "Rollout/Samples Per Prompt is 1"});
  o = {};
  KlOptions& kl = o.experience.kl;
  kl.coef = 0.1;
  kl.place = KlPlace::kReward;
  kl.control = KlControl::kAdaptive;
  kl.horizon = 100.0;
  o.rollout.prompts = 64;
  o.rollout.samples = 8;  // 512: the coefficient could become -0.024 times itself
  check_problem(o.problems(), {"Algorithm/KL Horizon is 100", "512", "above 102.4"});
  kl.horizon = 102.4;
  check_problem(o.problems(), {"Algorithm/KL Horizon is 102.4"});
  kl.horizon = 103.0;
  CHECK(o.problems().empty());
  kl.horizon = 100.0;
  kl.control = KlControl::kFixed;
  CHECK(o.problems().empty());
  o = {};
  o.dynamic.on = true;
  o.rewards.emplace_back().kind = RewardKind::kOverlong;
  check_problem(o.problems(), {"Algorithm/Dynamic Sampling", "only length, overlong"});
  o.rewards.emplace_back().kind = RewardKind::kTask;
  CHECK(o.problems().empty());
}

TEST_CASE("a reference is offloaded only if there is one that scores all samples at once") {
  RunOptions o;
  o.training.offload_reference = true;
  check_problem(o.problems(), {"Training/Offload Reference", "Algorithm/KL Coefficient"});
  o.experience.kl.coef = 0.01;
  CHECK(o.problems().empty());
  o.training.early_scoring = true;
  check_problem(o.problems(), {"Training/Offload Reference", "Early Scoring"});
}

TEST_CASE("prompts are learned from early only where each can be learned from alone") {
  const auto refused = [](const char* what, const auto& set) {
    RunOptions o;
    set(o);
    CHECK(o.problems().empty());
    o.training.early_learning = true;
    check_problem(o.problems(), {"Training/Early Learning is on", what});
  };
  RunOptions plain;
  plain.training.early_learning = true;
  CHECK(plain.problems().empty());
  refused("Training/Exactness", [](RunOptions& o) { o.training.exactness = Exactness::kRun; });
  refused("Algorithm/Estimator", [](RunOptions& o) {
    o.experience.advantage.estimator = AdvantageEstimator::kReinforcePlusPlusBaseline;
  });
  refused("Normalization", [](RunOptions& o) {
    o.experience.advantage.normalization = AdvantageNormalization::kBatch;
  });
  refused("Algorithm/Reward Adjustment",
          [](RunOptions& o) { o.experience.adjustment.how = RewardAdjustment::kVariance; });
  refused("Algorithm/Importance Weights",
          [](RunOptions& o) { o.experience.correction.weights = ImportanceLevel::kToken; });
  refused("Algorithm/Dynamic Sampling", [](RunOptions& o) { o.dynamic.on = true; });
  refused("Rollout/Rounds", [](RunOptions& o) { o.rollout.rounds.mode = RoundMode::kTail; });
  RewardOptions& reward = plain.rewards.emplace_back();
  reward.name = "judge";
  reward.kind = RewardKind::kModel;
  plain.experience.kl.coef = 0.1;
  CHECK(plain.problems().empty());
  refused("Rewards/judge/On Error", [](RunOptions& o) {
    RewardOptions& judge = o.rewards.emplace_back();
    judge.name = "judge";
    judge.kind = RewardKind::kCommand;
    judge.command.on_error = OnError::kDrop;
  });
}

TEST_CASE("settings that do not fit each other are named together") {
  RunOptions o;
  o.rollout.prompts = 4;
  o.training.mini_batches = 4;
  CHECK(o.problems().empty());
  o.training.mini_batches = 5;
  check_problem(o.problems(), {"Training/Mini Batches is 5", "Rollout/Prompts 4"});
  o.training.mini_batches = 1;
  o.evaluation.every = 3;
  CHECK(o.problems().empty());
  o.data.prompts = {"prompts.jsonl"};
  o.rule = RewardRule::kExact;
  check_problem(o.problems(), {"Evaluation/Every is 3", "Data/Evaluation Prompts"});
  o.data.evaluation_prompts = "held_out.jsonl";
  CHECK(o.problems().empty());
  o.rollout.lengths = "./" + o.output + "/../" + o.output;
  check_problem(o.problems(), {"Rollout/Lengths and Output/Directory are both"});
  o.rollout.lengths = "heavy-tail";
  CHECK(o.problems().empty());
}
