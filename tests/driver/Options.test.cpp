// SPDX-License-Identifier: Apache-2.0
#include "driver/Options.hpp"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

#include "driver/Options_params.hpp"
#include "param/ParamFile.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;

namespace {

// Exactly one problem, which names all the words.
void check_problem(const std::vector<std::string>& problems,
                   const std::vector<const char*>& words) {
  REQUIRE(problems.size() == 1);
  for (const char* word : words) CHECK_THAT(problems.front(), ContainsSubstring(word));
}

}  // namespace

TEST_CASE("the defaults have no problems") {
  CHECK(RunOptions().problems().empty());
  CHECK(RolloutOptions().problems().empty());
  CHECK(DataOptions().problems().empty());
}

TEST_CASE("a model that is not set is told, also where the working directory is gone") {
  namespace fs = std::filesystem;
  const fs::path before = fs::current_path();
  check_problem(ModelOptions().problems(), {"Model/Directory is not set", "working directory, /"});
  const fs::path gone = fs::temp_directory_path() / ("taper-gone-" + std::to_string(::getpid()));
  fs::create_directories(gone);
  fs::current_path(gone);
  fs::remove(gone);
  std::vector<std::string> problems;
  CHECK_NOTHROW(problems = ModelOptions().problems());
  fs::current_path(before);
  check_problem(problems, {"Model/Directory is not set", "check the path"});
}

TEST_CASE("rollouts that cannot teach are refused") {
  const auto problems = [](const std::string& rollout) {
    RunOptions o;
    param::Schema schema;
    describe(schema, o);
    return schema.read_and_list_problems(
        param::ParamFile::parse("Model: {Directory: m}\nRollout: {" + rollout + "}", "run.yaml"));
  };
  check_problem(problems("Samples Per Prompt: 1"), {"Rollout/Samples Per Prompt", "at least 2"});
  check_problem(problems("Repetition Penalty: 1.2"),
                {"Rollout/Repetition Penalty is 1.2", "wrong probabilities", "Evaluation/Sets"});
  check_problem(problems("Temperature: 0"), {"Rollout/Temperature is 0", "above 0"});
  CHECK(problems("Samples Per Prompt: 2, Temperature: 0.1").empty());
}

TEST_CASE("a reward rule must fit the prompts") {
  DataOptions o;
  o.rule = RewardRule::kBoxed;
  check_problem(o.problems(), {"Data/Reward Rule", "Data/Prompts"});
  o.prompts = {"prompts.jsonl"};
  CHECK(o.problems().empty());
  o.rule = RewardRule::kTask;
  check_problem(o.problems(), {"Data/Prompts", "Data/Reward Rule"});
  o.prompts.clear();
  o.task = "chess";
  check_problem(o.problems(), {"Data/Task", "chess", "collatz"});
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
                {"--set Model/Directory=: Model/Directory is not set", "working directory, /"});
  check_problem(problems({"Rollout/Step Rows=10"}),
                {"--set Rollout/Step Rows=10: Rollout/Step Rows is 10 and Rollout/Max Running 64"});
  check_problem(problems({"Rollout/Max Running=1e9"}),
                {"--set Rollout/Max Running=1e9: Rollout/Max Running is 1.0e+09", "1048576"});
  check_problem(problems({"Rollout/Step Rows=99999999"}), {"Rollout/Step Rows is 99999999"});
  check_problem(problems({"Optimizer/Schedule=cosine"}),
                {"--set Optimizer/Schedule=cosine: Optimizer/Total Steps is 0"});
  check_problem(problems({"Algorithm/Loss Aggregation=seq-mean-token-sum-norm"}),
                {"--set Algorithm/Loss Aggregation=seq-mean-token-sum-norm: Algorithm/Length Norm "
                 "is 0"});
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
  check_problem(o.problems(), {"Evaluation/Every is 3", "Data/Evaluation Prompts"});
  o.data.evaluation_prompts = "held_out.jsonl";
  CHECK(o.problems().empty());
}
