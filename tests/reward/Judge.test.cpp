// SPDX-License-Identifier: Apache-2.0
#include "reward/Judge.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <set>

#include "base/Error.hpp"
#include "support/AllSamples.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::WithinAbs;

namespace {

RewardOptions reward(const std::string& name, RewardKind kind, double weight = 1.0) {
  RewardOptions o;
  o.name = name;
  o.kind = kind;
  o.weight = weight;
  return o;
}

// Workers of tests/reward/worker.sh: 0.5 for a response, but for "bad".
RewardOptions command(const std::string& kind, OnError on_error) {
  RewardOptions o = reward("judge", RewardKind::kCommand);
  o.command.command = {TAPER_GOLDEN_DIR "/../reward/worker.sh", kind};
  o.command.on_error = on_error;
  o.command.retries = 0;
  o.command.timeout = 20;
  o.command.components = {"style"};
  return o;
}

// Two prompts of four responses each, which the ranks have made in turn.
struct Fixture : TestRanks {
  Scratch scratch;
  Spawner spawner;
  ModelFiles files{TAPER_DATA_DIR "/model"};
  std::vector<Prompt> prompts{{{}, "7", "one", ""}, {{}, "8", "two", ""}};
  std::set<ResponseId> cancelled;  // by answer()
  std::vector<std::string> texts{"#7", "#8", "bad", "#7#7", "#7", "#8", "##8", "x"};

  std::vector<Sample> judge(const std::vector<RewardOptions>& rewards,
                            MetricValues* metrics = nullptr) {
    Judge judge(rewards, files, ranks, &spawner, (scratch / "logs").string());
    judge.require_judges();
    judge.start_workers(ranks.rank() == 0 ? Judge::Start::kNow : Judge::Start::kOnDemand);
    auto samples = answer(judge, 0);
    if (metrics != nullptr) *metrics = judge.metrics("reward");
    return samples;
  }

  // Has the prompts answered and judged, under the ordinals from first_ordinal on.
  std::vector<Sample> answer(Judge& judge, int first_ordinal) {
    judge.begin(prompts, first_ordinal);
    std::vector<Sample> mine;
    for (int i = ranks.rank(); i < 8; i += ranks.size()) {
      Sample& s = mine.emplace_back();
      s.id = {first_ordinal + i / 4, i % 4};
      const auto ids = files.tokenizer().encode(texts[i], AddSpecial::kNo);
      s.response.assign(ids.begin(), ids.end());
      s.prompt = {1};
      judge.submit({.id = s.id, .prompt = s.prompt, .response = s.response, .finish = s.finish});
    }
    for (const ResponseId& id : cancelled) judge.cancel(id);
    std::erase_if(mine, [&](const Sample& s) { return cancelled.contains(s.id); });
    auto judged = judge.finish(std::move(mine), {});
    return judged ? all_samples(*judged) : std::vector<Sample>();
  }
};

}  // namespace

TEST_CASE("the score is the weighted sum of the rewards, on all ranks") {
  Fixture f;
  RewardOptions length = reward("length", RewardKind::kLength, 2.0);
  length.length = {2, 0.25, -1.0};
  RewardOptions form = reward("form", RewardKind::kFormat, 0.5);
  form.format = {{"##"}, false};
  RewardOptions overlong = reward("overlong", RewardKind::kOverlong, 0.0);
  overlong.overlong.limit = 1000;
  MetricValues metrics;
  const auto samples = f.judge({reward("right", RewardKind::kTask), length, form,
                                reward("repeated", RewardKind::kRepetition, 0.0), overlong},
                               &metrics);
  REQUIRE(samples.size() == 8);
  CHECK(samples[0].rewards == std::vector<float>{1, 0, 0, 0, 0});
  CHECK(samples[0].score == 1.0f);
  CHECK(samples[3].rewards[0] == 1.0f);
  CHECK(samples[3].rewards[1] == -0.5f);  // four bytes
  CHECK(samples[3].score == 0.0f);
  CHECK(samples[3].unshaped_score == 1.0f);  // its length does not count
  CHECK(samples[6].rewards[2] == 1.0f);
  CHECK_THAT(samples[6].score, WithinAbs(1.0 + 2 * -0.25 + 0.5, 1e-6));
  CHECK(samples[6].unshaped_score == 1.5f);
  CHECK(samples[6].id.prompt == 1);
  CHECK(value_of(metrics, "reward/right/mean") == 4.0 / 8);
  CHECK(value_of(metrics, "reward/length/min") == -0.5);
  CHECK(value_of(metrics, "reward/form/max") == 1.0);
}

TEST_CASE("one rule alone is the score and has no figures of its own") {
  Fixture f;
  MetricValues metrics;
  const auto samples = f.judge({reward("score", RewardKind::kTask)}, &metrics);
  CHECK(samples[0].score == 1.0f);
  CHECK(metrics.empty());
}

TEST_CASE("commands judge side by side with rules") {
  Fixture f;
  MetricValues metrics;
  const auto samples =
      f.judge({reward("right", RewardKind::kTask), command("good", OnError::kFail)}, &metrics);
  CHECK(samples[0].rewards == std::vector<float>{1, 0.5f, 0.25f});
  CHECK(samples[2].rewards == std::vector<float>{0, 0.75f, 0.25f});
  CHECK(samples[0].score == 1.5f);
  CHECK(value_of(metrics, "reward/judge/failed") == 0);
  CHECK(value_of(metrics, "reward/judge/style/mean") == 0.25);
  CHECK(value_of(metrics, "reward/judge/latency_s/max") > 0);
}

TEST_CASE("a response without a score counts as zero or is dropped, and is known as such") {
  for (const OnError on_error : {OnError::kZero, OnError::kDrop}) {
    Fixture f;
    MetricValues metrics;
    auto samples =
        f.judge({reward("right", RewardKind::kTask), command("reports", on_error)}, &metrics);
    CHECK(std::isnan(samples[2].rewards[1]));
    CHECK(std::isnan(samples[2].rewards[2]));
    CHECK(samples[2].score == 0.0f);
    CHECK(samples[2].unscored == (on_error == OnError::kDrop));
    CHECK(value_of(metrics, "reward/judge/failed") == 1);
    CHECK(value_of(metrics, "reward/judge/errors") == 1);
    CHECK(value_of(metrics, "reward/judge/mean") == 0.5);  // of those that have one
    REQUIRE(samples.size() == 8);
    for (int i = 0; i < 8; ++i) CHECK(samples[i].id.prompt * 4 + samples[i].id.sample == i);
  }
}

TEST_CASE("figures are of all responses since they were begun") {
  Fixture f;
  Judge judge({reward("right", RewardKind::kTask), command("reports", OnError::kZero)}, f.files,
              f.ranks, &f.spawner, (f.scratch / "logs").string());
  judge.start_workers(Judge::Start::kOnDemand);
  CHECK(judge.answer_rule() == RewardRule::kTask);
  f.answer(judge, 0);
  f.texts = {"#7", "#7", "#7", "#7", "#8", "#8", "#8", "#8"};  // all right
  f.answer(judge, 2);
  const MetricValues both = judge.metrics("reward");
  CHECK(value_of(both, "reward/right/mean") == (4.0 + 8.0) / 16);
  CHECK(value_of(both, "reward/right/min") == 0);
  CHECK(value_of(both, "reward/judge/failed") == 1);
  CHECK(value_of(both, "reward/judge/errors") == 1);
  const double longest = value_of(both, "reward/judge/latency_s/max");
  CHECK(longest >= value_of(both, "reward/judge/latency_s/mean"));
  judge.begin_figures();
  CHECK(judge.metrics("reward").empty());
  f.answer(judge, 4);
  const MetricValues last = judge.metrics("val");
  CHECK(value_of(last, "val/right/mean") == 1.0);
  CHECK(value_of(last, "val/right/min") == 1.0);
  CHECK(value_of(last, "val/judge/failed") == 0);
}

TEST_CASE("a judge keeps what it was told of the prompts, whatever becomes of the caller's") {
  Fixture f;
  Judge judge({reward("right", RewardKind::kTask)}, f.files, f.ranks, nullptr, "");
  judge.begin(f.prompts, 10);
  for (Prompt& p : f.prompts) p.truth = "9";
  std::vector<Sample> mine;
  if (f.ranks.rank() == 0) {
    Sample& s = mine.emplace_back();
    s.id = {11, 0};
    const auto ids = f.files.tokenizer().encode("#8", AddSpecial::kNo);
    s.response.assign(ids.begin(), ids.end());
  }
  SampleSet judged = judge.finish(std::move(mine), {}).value();
  CHECK(judged.all().front().score == 1.0f);
}

TEST_CASE("rewards that read no text need no tokenizer") {
  TestRanks world;
  const ModelFiles files(TAPER_GOLDEN_DIR "/models/llama_a");
  REQUIRE(!files.has_tokenizer());
  RewardOptions length = reward("length", RewardKind::kLength);
  length.length = {1, 0.5, -1.0};
  Judge judge({length, reward("repeated", RewardKind::kRepetition, 0.0)}, files, world.ranks,
              nullptr, "");
  judge.begin(std::vector<Prompt>(1));
  std::vector<Sample> mine;
  if (world.ranks.rank() == 0) mine.emplace_back().response = {5, 6};
  SampleSet judged = judge.finish(std::move(mine), {}).value();
  CHECK(judged.all().front().score == -0.5f);
}

TEST_CASE("workers that score nothing end the job, whatever errors count as") {
  Fixture f;
  CHECK_THROWS_MATCHES(f.judge({command("exits", OnError::kZero)}), Error,
                       MessageMatches(ContainsSubstring("has scored none of 8 responses")));
}

TEST_CASE("cancelled responses are neither waited for nor missed") {
  Fixture f;
  RewardOptions hanging = command("hangs", OnError::kFail);
  hanging.command.workers = 8;  // the others go on
  Judge judge({reward("right", RewardKind::kTask), hanging}, f.files, f.ranks, &f.spawner,
              (f.scratch / "logs").string());
  judge.start_workers(Judge::Start::kOnDemand);
  f.cancelled = {{0, 2}, {1, 3}};  // the first one is "bad"
  const auto samples = f.answer(judge, 0);
  REQUIRE(samples.size() == 6);
  for (const Sample& s : samples) CHECK(s.rewards[1] == 0.5f);
  const MetricValues metrics = judge.metrics("reward");
  CHECK(value_of(metrics, "reward/judge/failed") == 0);
  CHECK(value_of(metrics, "reward/judge/errors") == 0);
  CHECK(value_of(metrics, "reward/judge/timeouts") == 0);
  CHECK(value_of(metrics, "reward/right/mean") == 4.0 / 6);
  f.cancelled = {{2, 2}, {2, 0}, {2, 1}, {2, 3}};  // a whole group
  CHECK(f.answer(judge, 2).size() == 4);
}
