// SPDX-License-Identifier: Apache-2.0
#include "infer/EvalJob.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "io/Json.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"
#include "workers/Spawner.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Fixture : TestRanks {
  Fixture() {
    for (const std::string text : {"12+34=", "20+30+40="}) {
      const auto ids = files.tokenizer().encode(text, AddSpecial::kNo);
      prompts.push_back({{ids.begin(), ids.end()}, "", prompts.empty() ? "one" : "two"});
    }
  }

  // Any response scores 1 by its length. A worker of tests/reward/worker.sh takes that back from
  // those that it judges, and the others are dropped.
  EvalResult evaluate(const std::string& worker, int samples) {
    RewardOptions length;
    length.name = "length";
    length.kind = RewardKind::kLength;
    length.weight = -1.0;
    length.length = {-1, 1.0, -1.0};
    RewardOptions judge;
    judge.name = "judge";
    judge.kind = RewardKind::kCommand;
    judge.weight = -2.0;
    judge.command.command = {TAPER_GOLDEN_DIR "/../reward/worker.sh", worker};
    judge.command.on_error = OnError::kDrop;
    judge.command.retries = 0;
    GenerateOptions options;
    options.samples = samples;
    options.max_new_tokens = 4;
    options.sampling.temperature = 1.0f;
    return EvalJob(options, {length, judge}, files, prompts, ranks, &spawner,
                   (scratch / "logs").string())
        .run();
  }

  Scratch scratch;
  Spawner spawner;
  ModelFiles files{TAPER_DATA_DIR "/model"};
  std::vector<Prompt> prompts;
};

}  // namespace

TEST_CASE("responses that a reward drops count neither as right nor as wrong") {
  Fixture f;
  const EvalResult result = f.evaluate("first", 4);  // drops the first of each prompt's four
  CHECK(result.sources.size() == 2);
  const EvalScores& all = result.scores;
  CHECK(all.prompts == 2);
  CHECK(all.avg == 0.0);
  CHECK(all.maj == 0.0);
  CHECK(all.pass.at(2) == 0.0);
  const Json json = parse_json(to_json(result), "the result");
  CHECK(json["tasks"]["all"].contains("avg@4"));
  CHECK(json["tasks"]["all"].contains("pass@2"));
  CHECK(!json["tasks"]["all"].contains("pass@3"));  // of the three that are left
  CHECK(!json["tasks"]["all"].contains("pass@4"));
  const std::string table = to_table(result);
  CHECK_THAT(table, ContainsSubstring("    avg@4") && ContainsSubstring("    pass@4") &&
                        ContainsSubstring("         -") && !ContainsSubstring("pass@3"));
}

TEST_CASE("a prompt without a judged response is left out") {
  Fixture f;
  const EvalResult result = f.evaluate("second", 2);  // drops all of the first prompt
  REQUIRE(result.sources.size() == 1);
  REQUIRE(result.sources.contains("two"));
  CHECK(result.sources.at("two").prompts == 1);
  CHECK(result.sources.at("two").avg == 0.0);
  CHECK(result.sources.at("two").pass.at(2) == 0.0);
}

TEST_CASE("each source has a row, and all together where there are several") {
  EvalResult result;
  result.samples = 2;
  result.scores.prompts = 3;
  result.scores.pass = {{1, 0.5}, {2, 1.0}};
  result.sources["one"].prompts = 1;
  const auto tasks = [&] { return parse_json(to_json(result), "the result")["tasks"]; };
  CHECK(tasks().size() == 1);
  CHECK(tasks().contains("one"));
  result.sources["two"].prompts = 2;
  CHECK(tasks().size() == 3);
  CHECK(tasks()["all"]["prompts"] == 3);
  CHECK(tasks()["all"]["pass@2"] == 1.0);
  CHECK_THAT(to_table(result), ContainsSubstring("\nall ") && ContainsSubstring("\ntwo "));
  result.sources = {{"", result.scores}};  // of a file without data sources
  CHECK(tasks().size() == 1);
  CHECK(tasks()["all"]["prompts"] == 3);
}
