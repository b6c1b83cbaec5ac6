// SPDX-License-Identifier: Apache-2.0
//
// From preference pairs to a policy that is trained by them, as scripts do it.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "Commands.hpp"

using namespace taper;
using namespace taper::commands;

namespace {

std::string pairs(int count, int first = 10) {
  std::string text;
  for (int i = first; i < first + count; ++i) {
    const std::string n = std::to_string(i), sum = std::to_string(2 * i);
    text += R"({"prompt": ")" + n + "+" + n + R"(=", "chosen": "#)" + sum + R"(", "rejected": ")" +
            sum + "\"}\n";
  }
  return text;
}

std::string set(const std::string& name, const std::string& value) {
  return " --set \"" + name + "=" + value + "\"";
}

std::string train_rewards(const Scratch& scratch, const std::string& files) {
  return "reward-model" + set("Model/Directory", scratch / "model") + set("Data/Files", files) +
         set("Model/Weight Type", "f32") + set("Training/Batch Pairs", "4") +
         set("Training/Max Tokens", "128") + set("Optimizer/Learning Rate", "1e-3") +
         set("Output/Directory", scratch / "rewards");
}

double last_value(const std::string& file, const std::string& name) {
  double value = -1;
  for (const Json& line : lines_of(file))
    if (line.contains(name)) value = line[name];
  return value;
}

}  // namespace

TEST_CASE("a reward model is trained, and a policy learns from it") {
  const Scratch scratch;
  spill(scratch / "pairs.jsonl", pairs(24));
  spill(scratch / "held_out.jsonl", pairs(6, 50));
  const std::string command = train_rewards(scratch, scratch / "pairs.jsonl") +
                              set("Training/Epochs", "3") +
                              set("Data/Validation Files", scratch / "held_out.jsonl");
  const Outcome checked = run(command + " --check");
  INFO(checked.text);
  CHECK(checked.code == 0);
  CHECK_THAT(checked.text, ContainsSubstring("reward model weights (packed)") &&
                               ContainsSubstring("scalar head (training)") &&
                               !ContainsSubstring("logits"));
  CHECK(!fs::exists(scratch / "rewards"));
  const Outcome trained = run(command);
  INFO(trained.text);
  REQUIRE(trained.code == 0);
  CHECK(last_value(scratch / "rewards.run/metrics.jsonl", "val/accuracy") == 1.0);
  const Outcome shown = run("inspect " + scratch / "rewards");
  CHECK_THAT(shown.text, ContainsSubstring("scalar head"));

  const std::string rewards =
      "Rewards: {preferred: {Kind: model, Directory: " + scratch / "rewards" +
      "}, right: {Kind: task, Weight: 0}}\n";
  spill(scratch / "run.yaml",
        "Model: {Directory: " + scratch / "model" + "}\nData: {Task: sum}\n" + rewards +
            "Rollout: {Prompts: 2, Samples Per Prompt: 2, Max New Tokens: 8, Max Prompt Tokens: "
            "32}\nTraining: {Iterations: 1, Mini Batches: 1}\nOutput: {Directory: " +
            scratch / "run" + "}\n");
  const Outcome learned = run("train " + scratch / "run.yaml");
  INFO(learned.text);
  REQUIRE(learned.code == 0);
  CHECK_THAT(learned.text, ContainsSubstring("reward model preferred weights (packed)") &&
                               ContainsSubstring("reward model preferred activations"));
  const std::string metrics = scratch / "run/metrics.jsonl";
  const double mean = last_value(metrics, "reward/preferred/mean");
  CHECK(mean != 0.0);
  CHECK(std::abs(mean - last_value(metrics, "critic/score/mean")) < 1e-6);

  spill(scratch / "rewards.yaml", rewards);
  const Outcome evaluated =
      run("eval --model " + scratch / "model" +
          " --task sum --count 3 --max-new-tokens 8 --rewards " + scratch / "rewards.yaml");
  INFO(evaluated.text);
  CHECK(evaluated.code == 0);
  CHECK_THAT(evaluated.text, ContainsSubstring("reward/preferred"));

  std::string split = rewards;
  split.insert(split.find("Kind: model"), "Tensor Parallel: 2, ");
  spill(scratch / "rewards.yaml", split);
  scratch.refuses("eval --model " + scratch / "model" + " --task sum --count 3 --rewards " +
                      scratch / "rewards.yaml",
                  {"Rewards/preferred/Tensor Parallel is 2", "the 1 ranks"});
}

TEST_CASE("reward-model names what it cannot learn") {
  const Scratch scratch;
  const std::string file = scratch / "pairs.jsonl";
  spill(file, pairs(3) + "{\"prompt\": \"1\", \"chosen\": \"2\"}\n");
  Outcome outcome = run(train_rewards(scratch, file));
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.text, ContainsSubstring("pairs.jsonl:4: 'rejected' is missing"));
  spill(file, pairs(3));
  outcome = run(train_rewards(scratch, file) + set("Training/Max Tokens", "4"));
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.text, ContainsSubstring("all pairs are too long"));
  outcome = run("reward-model" + set("Model/Directory", scratch / "model"));
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.text, ContainsSubstring("Data/Files is not set"));
  outcome = run("reward-model" + set("Data/Fils", "x"));
  CHECK_THAT(outcome.text, ContainsSubstring("Files"));
  CHECK(!fs::exists(scratch / "rewards"));
}

TEST_CASE("reward-model says which directory has another run") {
  const Scratch scratch;
  const std::string file = scratch / "pairs.jsonl", checkpoint = scratch / "other";
  spill(file, pairs(3));
  for (const std::string& directory : {checkpoint, scratch / "log"})
    fs::create_directories(directory);
  spill(checkpoint + "/manifest.json", "{}");
  spill(scratch / "log/metrics.jsonl", "");
  scratch.refuses(
      train_rewards(scratch, file) + set("Output/Run Directory", scratch / "log") +
          " --check --resume " + checkpoint,
      {"belongs to another run than Output/Run Directory", "name a new Output/Run Directory"});
}

TEST_CASE("reward-model tells its parameters") {
  const Outcome defaults = run("reward-model --dump-default");
  CHECK(defaults.code == 0);
  for (const char* name : {"Center Rewards", "Batch Pairs", "Over Long", "Validation Files"})
    CHECK_THAT(defaults.text, ContainsSubstring(name));
  const Outcome one = run("reward-model --set Training/Epochs=7 --print \"Training/Epochs\"" +
                          set("Model/Directory", "x") + set("Data/Files", "y"));
  CHECK(one.text == "7\n");
}
