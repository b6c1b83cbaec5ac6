// SPDX-License-Identifier: Apache-2.0
#include "reward/RewardCommands.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "rl/SampleSet.hpp"
#include "support/AllSamples.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

// One command, workers of tests/reward/worker.sh: 0.5 for a response, but for "bad".
struct Fixture : TestRanks {
  Scratch scratch;
  Spawner spawner;
  std::vector<RewardOptions> rewards{1};
  RewardOptions& judge = rewards.front();
  std::vector<Prompt> prompts{{{1}, "", "", ""}, {{2}, "", "", ""}};
  std::vector<std::string> texts = std::vector<std::string>(8, "x");  // four to each prompt
  RewardFigures figures{{"judge"}};

  explicit Fixture(const std::string& behavior) {
    judge.name = "judge";
    judge.kind = RewardKind::kCommand;
    judge.command.command = {TAPER_GOLDEN_DIR "/../reward/worker.sh", behavior};
    judge.command.on_error = OnError::kZero;
    judge.command.retries = 0;
    judge.command.timeout = 20;
  }

  RewardCommands make() { return {rewards, ranks, &spawner, (scratch / "logs").string()}; }

  // What a rank submits: the responses that the ranks have made in turn.
  std::vector<Sample> submit(RewardCommands& commands) {
    commands.begin(prompts, 5);
    std::vector<Sample> mine;
    for (int i = ranks.rank(); i < 8; i += ranks.size()) {
      Sample& s = mine.emplace_back();
      s.id = {5 + i / 4, i % 4};
      JudgedResponse response;
      response.id = s.id;
      response.response = texts[i];
      commands.submit(response);
    }
    return mine;
  }

  // Has them scored; those of all ranks, nothing if `stop` ended it.
  std::optional<std::vector<Sample>> ask(RewardCommands& commands,
                                         const std::function<bool()>& stop = {}) {
    std::vector<Sample> mine = submit(commands);
    if (!commands.collect(stop)) return std::nullopt;
    for (Sample& s : mine) s.score = static_cast<float>(commands.add_answer(judge, s));
    SampleSet samples(ranks.world(), std::move(mine));
    figures.begin();
    figures.add(samples.all());
    commands.conclude(samples.all(), figures);
    return all_samples(samples);
  }

  double figure(const std::string& name) const {
    return value_of(figures.metrics("reward"), "reward/judge/" + name);
  }
};

}  // namespace

TEST_CASE("nothing is asked and nothing waits before commands are started") {
  Fixture f("good");
  RewardCommands commands = f.make();
  CHECK(commands.empty());
  CHECK(commands.collect([] { return true; }));
  commands.start(RewardCommands::Start::kOnDemand);
  CHECK_FALSE(commands.empty());
}

TEST_CASE("a stop ends the wait for workers") {
  Fixture f("hangs");
  f.texts[2] = "bad";
  RewardCommands commands = f.make();
  commands.start(RewardCommands::Start::kNow);
  CHECK_FALSE(f.ask(commands, [] { return true; }));
}

TEST_CASE("a missing score that must not be is an error that names the sample") {
  Fixture f("reports");
  f.judge.command.on_error = OnError::kFail;
  const int last = f.ranks.size() - 1;
  f.texts[last] = "bad";  // of the last rank; all ranks tell it
  RewardCommands commands = f.make();
  commands.start(RewardCommands::Start::kOnDemand);
  CHECK_THROWS_MATCHES(f.ask(commands), Error,
                       MessageMatches(ContainsSubstring(
                           "Rewards/judge has no score for sample " + std::to_string(last) +
                           " of prompt 5 after 1 attempt (reported: no such judge)")));
}

TEST_CASE("a missing score that must not be ends the wait for all others, on all ranks") {
  Fixture f("bad_only");
  f.judge.command.on_error = OnError::kFail;
  f.judge.command.retries = 1;
  f.judge.command.workers = 4;
  f.judge.command.timeout = 1e6;
  f.texts.assign(8, "bad");  // takes for ever
  f.texts[2] = "x";
  RewardCommands commands = f.make();
  commands.start(RewardCommands::Start::kNow);
  CHECK_THROWS_MATCHES(f.ask(commands), Error,
                       MessageMatches(ContainsSubstring(
                           "no score for sample 2 of prompt 5 after 2 attempts (reported: good)")));
}

TEST_CASE("a rank knows of each response whether it has been judged, before all are") {
  Fixture f("gate");
  const std::string gate = (f.scratch / ("gate" + std::to_string(f.ranks.rank()))).string();
  f.judge.command.command.push_back(gate);
  f.judge.command.workers = 2;
  f.texts[f.ranks.rank()] = "bad";  // judged once there is the file
  RewardCommands commands = f.make();
  commands.start(RewardCommands::Start::kNow);
  const std::vector<Sample> mine = f.submit(commands);
  const auto wait_for = [&](const Sample& s) {
    for (; !commands.has_answers(s.id); commands.take_answers())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  for (std::size_t k = 1; k < mine.size(); ++k) wait_for(mine[k]);
  commands.take_answers();
  CHECK_FALSE(commands.has_answers(mine.front().id));
  spill(gate, "");
  wait_for(mine.front());
  CHECK(commands.collect({}));
  for (Sample s : mine) CHECK(commands.add_answer(f.judge, s) == 0.5);
}

TEST_CASE("a lost answer counts as one only where the run goes on without it") {
  for (const OnError on_error : {OnError::kZero, OnError::kFail}) {
    Fixture f("reports");
    f.judge.command.on_error = on_error;
    f.texts[f.ranks.rank()] = "bad";
    RewardCommands commands = f.make();
    commands.start(RewardCommands::Start::kOnDemand);
    const std::vector<Sample> mine = f.submit(commands);  // one worker answers in this order
    for (; !commands.has_answers(mine.back().id); commands.take_answers())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(commands.has_answers(mine.front().id) == (on_error == OnError::kZero));
    if (on_error == OnError::kZero)
      CHECK(commands.collect({}));
    else
      CHECK_THROWS_AS(commands.collect({}), Error);
  }
}

TEST_CASE("times of good answers shorten those of the next ones to the same prompt") {
  Fixture f("tires");  // "bad" takes for ever
  f.judge.command.workers = 1;
  f.judge.command.retries = 2;
  f.judge.command.timeout = 100;  // far above what is waited for here
  f.judge.command.start_timeout = 3;
  f.judge.adaptive_timeout = {true, 1.5, 3.0, 100.0};
  Anchors::Table learned;
  {
    RewardCommands commands = f.make();
    commands.start(RewardCommands::Start::kOnDemand);
    REQUIRE(f.ask(commands));
    CHECK(f.figure("cut_short") == 0);
    CHECK(f.figure("anchor_hits") == 0);
    learned = commands.anchors();
    REQUIRE(learned.size() == 2);
    for (const auto& [hash, ns] : learned) {
      CHECK(ns > 0);
      std::vector<std::int64_t> most{ns};
      all_reduce_max(f.ranks.world(), most);
      CHECK(ns == most.front());  // of all ranks
    }
  }
  // Another job goes on with that.
  RewardCommands commands = f.make();
  commands.start(RewardCommands::Start::kOnDemand);
  commands.set_anchors(learned);
  f.texts[2] = "bad";
  const auto samples = f.ask(commands);
  REQUIRE(samples);
  REQUIRE(samples->size() == 8);
  CHECK(std::isnan((*samples)[2].rewards[0]));
  CHECK((*samples)[2].score == 0.0f);
  CHECK((*samples)[3].score == 0.75f);
  CHECK(f.figure("cut_short") == 1);
  CHECK(f.figure("timeouts") == 1);  // no other attempt
  CHECK(f.figure("failed") == 1);
  CHECK(f.figure("anchor_hits") == 2);
  REQUIRE(commands.anchors().size() == 2);
  for (const auto& [hash, ns] : commands.anchors()) CHECK(ns >= learned.at(hash));
}

TEST_CASE("answers that are not good give no anchors, nor do commands without adaptive timeouts") {
  Fixture f("good");  // 0.75 for "bad", 0.5 for all else
  for (const bool on : {true, false}) {
    f.judge.adaptive_timeout = {on, 1.5, 10.0, 20.0};
    RewardCommands commands = f.make();
    commands.start(RewardCommands::Start::kOnDemand);
    f.ask(commands);
    CHECK(commands.anchors().empty());
    commands.set_anchors({{1, 2}});
    CHECK(commands.anchors().size() == (on ? 1 : 0));
  }
}

TEST_CASE("programs that are not there are named") {
  Fixture f("good");
  for (const char* program :
       {"no-such-program", "/no/such/program", "/tmp", TAPER_DATA_DIR "/quickstart.yaml"}) {
    f.judge.command.command = {program};
    CHECK_THROWS_MATCHES(
        f.make().require_programs(), Error,
        MessageMatches(ContainsSubstring("Rewards/judge/Command") && ContainsSubstring(program)));
  }
}
