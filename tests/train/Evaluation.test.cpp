// SPDX-License-Identifier: Apache-2.0
#include "train/Evaluation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "param/ParamFile.hpp"
#include "train/RunOptions_params.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;

namespace {

using Names = std::set<std::string>;

// A run file with these evaluations, and what is wrong with it.
struct Reading {
  explicit Reading(const std::string& evaluation,
                   const std::vector<std::string>& assignments = {}) {
    param::Schema schema;
    describe(schema, options);
    param::ParamFile file =
        param::ParamFile::parse("Model:\n  Directory: m\nEvaluation:\n" + evaluation, "run.yaml");
    for (const auto& assignment : assignments) file.set(assignment);
    problems = schema.read_and_list_problems(file);
    yaml = schema.current_yaml();
  }

  RunOptions options;
  std::vector<std::string> problems;
  std::string yaml;
};

constexpr const char* kTwoSets = R"(  Every: 2
  Best By: val/sums/avg@4
  Patience: 3
  Sets:
    sums:
      Task: sum
      Prompts: 8
      Samples: 4
      Temperature: 0.7
      Top P: 0.9
      Repetition Penalty: 1.5
    held out:
      Prompt File: x.jsonl
      Reward Rule: boxed
)";

}  // namespace

TEST_CASE("named sets are read, from the file and from assignments, and stand in the results") {
  std::string text = kTwoSets;
  text.replace(text.find("held out"), 8, "held-out");
  const Reading run(
      text, {"Evaluation/Sets/held-out/Max New Tokens=5", "Evaluation/Sets/third/Prompts=7"});
  CHECK(run.problems.empty());
  const auto& sets = run.options.evaluation.sets;
  REQUIRE(sets.size() == 3);
  CHECK(sets.at("sums").task == "sum");
  CHECK(sets.at("sums").samples == 4);
  CHECK(sets.at("sums").sampling.temperature == 0.7f);
  CHECK(sets.at("sums").sampling.top_p == 0.9f);
  CHECK(sets.at("sums").sampling.repetition_penalty == 1.5f);
  CHECK(sets.at("held-out").file == "x.jsonl");
  CHECK(sets.at("held-out").rule == RewardRule::kBoxed);
  CHECK(sets.at("held-out").max_new_tokens == 5);
  CHECK(sets.at("third").prompts == 7);
  CHECK(sets.at("third").sampling.temperature == 0.0f);  // greedy
  // The dump is a run file again.
  RunOptions again;
  param::Schema schema;
  describe(schema, again);
  schema.read(param::ParamFile::parse(run.yaml, "again.yaml"));
  CHECK(schema.current_yaml() == run.yaml);
  CHECK(again.evaluation.sets.at("sums").prompts == 8);
  CHECK(Evaluation::figures(again.evaluation) == Names{"val/held-out/avg@1", "val/sums/avg@4",
                                                       "val/sums/maj@4", "val/sums/pass@2",
                                                       "val/sums/pass@4", "val/third/avg@1"});
}

TEST_CASE("an evaluation without the figure of the best checkpoint is told, with those it has") {
  EvaluationOptions o;
  o.sets["sums"].samples = 4;
  const MetricValues figures{{"val/sums/avg@4", 0.5},
                             {"val/sums/pass@2", 0.5},
                             {"val/sums/response_length", 7},
                             {"val/reward/judge/mean", 0.5}};
  CHECK(Evaluation::lack_of_best(o, figures).empty());  // none is asked for
  o.best.metric = "val/sums/pass@2";
  CHECK(Evaluation::lack_of_best(o, figures).empty());
  o.best.metric = "val/sums/pass@4";
  const std::string lack = Evaluation::lack_of_best(o, figures);
  CHECK_THAT(lack, ContainsSubstring("Evaluation/Best By is val/sums/pass@4"));
  CHECK(lack.ends_with("choose one of val/sums/avg@4, val/sums/pass@2"));
}

TEST_CASE("what is wrong with sets is told with their keys") {
  struct Case {
    const char *evaluation, *key, *words;
  };
  const Case cases[] = {
      {"  Every: 1\n  Sets: {a: {Samples: 2, Prompts: 4}}\n", "Evaluation/Sets/a/Samples is 2",
       "all the same"},
      {"  Every: 1\n  Sets: {a: {Task: chess, Prompts: 4}}\n",
       "Evaluation/Sets/a/Task: unknown task", "chess"},
      {"  Every: 1\n  Sets: {a: {Task: sum}}\n", "Evaluation/Sets/a/Prompts is 0", "set it"},
      {"  Every: 1\n  Sets: {a: {Task: sum, Prompt File: f, Reward Rule: exact}}\n",
       "Evaluation/Sets/a has both", "remove one"},
      {"  Every: 1\n  Sets: {a: {Prompt File: f}}\n", "Evaluation/Sets/a needs Reward Rule",
       "boxed"},
      {"  Every: 1\n  Sets: {score: {Task: sum, Prompts: 4}}\n", "Evaluation/Sets/score has a name",
       "choose another"},
      {"  Every: 1\n  Sets: {reward: {Task: sum, Prompts: 4}}\n",
       "Evaluation/Sets/reward has a name", "choose another"},
      {"  Every: 1\n  Sets: {a: {Prompt File: f}}\nRewards: {r: {Kind: task}}\n",
       "Evaluation/Sets/a needs Reward Rule", "boxed"},
      {"  Every: 1\n  Sets: {a: {Prompts: 4, Max New Tokens: 9999}}\n",
       "Evaluation/Sets/a/Max New Tokens is 9999", "Rollout/Max New Tokens 1024"},
      {"  Every: 1\n  Sets: {a: {Prompts: 4, Rule: x}}\n", "Evaluation/Sets/a/Rule is unknown",
       "Reward Rule"},
      {"  Every: 1\n  Sets: {a: 4}\n", "Evaluation/Sets/a", "a section of parameters is expected"},
      {"  Every: 1\n  Sets: [a]\n", "Evaluation/Sets is", "a section"},
      {"  Every: 1\n  Best By: val/a/avg@4\n  Sets: {a: {Prompts: 4}}\n",
       "Evaluation/Best By is val/a/avg@4", "the metrics are val/a/avg@1"},
      {"  Best By: val/score/mean\n", "Evaluation/Best By is val/score/mean",
       "Evaluation/Every is 0"},
      {"  Every: 1\n  Patience: 3\n", "Evaluation/Patience is 3", "Evaluation/Best By"},
  };
  for (const Case& c : cases) {
    const Reading run(c.evaluation);
    INFO(c.evaluation);
    REQUIRE(run.problems.size() == 1);
    CHECK_THAT(run.problems.front(), ContainsSubstring("run.yaml"));
    CHECK_THAT(run.problems.front(), ContainsSubstring(c.key) && ContainsSubstring(c.words));
  }
  CHECK(Reading("  Every: 1\n  Best By: val/score/mean\n  Patience: 2\n").problems.empty());
  // Judged by the run's rewards.
  CHECK(Reading("  Every: 1\n  Sets: {a: {Prompt File: f}}\nData: {Prompts: p}\n"
                "Rewards: {r: {Kind: exact}}\n")
            .problems.empty());
}
