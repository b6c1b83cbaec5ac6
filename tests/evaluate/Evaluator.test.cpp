// SPDX-License-Identifier: Apache-2.0
#include "evaluate/Evaluator.hpp"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/Timer.hpp"
#include "instance/InferenceModel.hpp"
#include "session/SharedArena.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"
#include "workers/Spawner.hpp"

using namespace taper;
using namespace taper::test;
namespace fs = std::filesystem;

namespace {

RewardOptions reward_of(RewardRule rule) {
  RewardOptions o;
  o.name = "right";
  o.kind = kind_of(rule);
  return o;
}

// The embedded model, loaded and with a generator, and a judge.
struct Fixture : TestRanks {
  explicit Fixture(RewardOptions reward = reward_of(RewardRule::kTask))
      : generator(options(), WeightType::kF32, files, ranks, plan.phase("generation")),
        judge({at_home(std::move(reward))}, files, ranks, &spawner, (scratch / "logs").string()),
        model("model", files, ranks, generator.smallest_degree()),
        evaluator(files, ranks, options().stops(files)) {
    model.add_memory(plan, WeightType::kF32);
    generator.add_memory(plan);
    arena = make_arena(ranks, plan);
    model.load(WeightType::kF32, *arena);
    generator.create(model.packed(), *arena, files.rope_table(generator.max_positions()));
    judge.start_workers(Judge::Start::kOnDemand);
  }

  static GeneratorOptions options() {
    GeneratorOptions o;
    o.max_new_tokens = 80;
    o.kv_memory_mb = 64;
    return o;
  }
  // Four workers of tests/reward/worker.sh on each rank, which find out whether four are at work.
  static RewardOptions meeting() {
    RewardOptions o;
    o.name = "judge";
    o.kind = RewardKind::kCommand;
    o.command.command = {TAPER_GOLDEN_DIR "/../reward/worker.sh", "meets"};
    o.command.workers = 4;
    return o;
  }
  // Where they meet.
  fs::path place() const { return scratch / ("rank-" + std::to_string(ranks.rank())); }
  RewardOptions at_home(RewardOptions reward) const {
    if (reward.kind == RewardKind::kCommand) reward.command.command.push_back(place().string());
    return reward;
  }

  EvaluationSet sums(int prompts, int samples) {
    EvaluationSet set;
    set.prompts = held_out_prompts({"", "sum", prompts}, {}, 1, files);
    set.samples = samples;
    set.max_new_tokens = 80;
    set.sampling.temperature = 0.8f;
    set.sampling.seed = 1;
    set.judge = &judge;
    return set;
  }
  SetFigures evaluate(const EvaluationSet& set) {
    return evaluator.judge(set, evaluator.answer(set, &generator).value()).value();
  }

  Scratch scratch;
  Spawner spawner;
  ModelFiles files{TAPER_DATA_DIR "/model"};
  MemoryPlan plan;
  Generator generator;
  Judge judge;
  InferenceModel model;
  Evaluator evaluator;
  std::unique_ptr<Arena> arena;
};

std::size_t files_in(const fs::path& folder) {
  std::size_t count = 0;
  if (fs::exists(folder))
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++count;
  return count;
}

}  // namespace

TEST_CASE("each set is judged by its judge") {
  Fixture f;
  EvaluationSet set = f.sums(8, 3);
  const SetFigures by_task = f.evaluate(set);
  CHECK((by_task.scores.avg > 0 && by_task.scores.avg < 1));
  CHECK(by_task.scores.prompts == 8);
  Judge boxed({reward_of(RewardRule::kBoxed)}, f.files, f.ranks, nullptr, "");
  set.judge = &boxed;
  const SetFigures by_box = f.evaluate(set);
  CHECK(by_box.scores.avg == 0.0);  // nothing is in a box
  CHECK(by_box.mean_length == by_task.mean_length);
  CHECK(by_box.truncated == by_task.truncated);
  set.judge = &f.judge;
  CHECK(f.evaluate(set).scores.avg == by_task.scores.avg);
}

TEST_CASE("commands are asked while responses are generated, and need no generator") {
  Fixture f(Fixture::meeting());
  const EvaluationSet set = f.sums(4, 2);  // four for each of two ranks
  auto answers = f.evaluator.answer(set, &f.generator);
  REQUIRE(answers);
  f.arena.reset();  // the place of reward models
  const Timer timer;
  while (files_in(f.place()) < 4 && timer.seconds() < 20)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(files_in(f.place()) >= 4);  // though nobody waits for them yet
  const auto figures = f.evaluator.judge(set, std::move(*answers));
  REQUIRE(figures);
  CHECK(figures->scores.avg == 1.0);
}

TEST_CASE("figures are of the set and of each source, lengths of all responses") {
  Fixture f;
  EvaluationSet set = f.sums(3, 2);
  set.prompts[0].source = "one";
  set.prompts[1].source = set.prompts[2].source = "two";
  set.max_new_tokens = 1;
  const SetFigures figures = f.evaluate(set);
  CHECK(figures.samples == 2);
  CHECK(figures.scores.prompts == 3);
  REQUIRE(figures.sources.size() == 2);
  CHECK(figures.sources.at("one").prompts == 1);
  CHECK(figures.sources.at("two").prompts == 2);
  CHECK(figures.mean_length == 1.0);
  CHECK(figures.truncated == 6);
}

TEST_CASE("random numbers are those of evaluation, whatever the set says") {
  Fixture f;
  EvaluationSet set = f.sums(2, 2);
  const auto first = f.evaluator.answer(set, &f.generator);
  set.sampling.purpose = RandomPurpose::kEvaluation;
  const auto second = f.evaluator.answer(set, &f.generator);
  REQUIRE((first && second && first->size() == second->size()));
  for (std::size_t i = 0; i < first->size(); ++i)
    CHECK((*first)[i].response == (*second)[i].response);
}

TEST_CASE("a stop ends the wait for commands, and generation") {
  Fixture f(Fixture::meeting());
  const EvaluationSet set = f.sums(1, 1);  // alone, a worker waits some seconds for others
  const auto stop = [](const Group&) { return true; };
  auto answers = f.evaluator.answer(set, &f.generator);
  REQUIRE(answers);
  CHECK(!f.evaluator.judge(set, std::move(*answers), stop));
  CHECK(!f.evaluator.answer(set, &f.generator, stop));
}

TEST_CASE("a run records the scores that say something, as far as they are there") {
  SetFigures figures;
  figures.samples = 4;
  figures.scores.avg = 0.5;
  figures.scores.pass = {{1, 0.5}, {2, 0.75}};  // no prompt has four
  figures.scores.maj = 0.25;
  figures.mean_length = 7;
  CHECK(recorded_figures("a", figures) == MetricValues{{"val/a/avg@4", 0.5},
                                                       {"val/a/pass@2", 0.75},
                                                       {"val/a/maj@4", 0.25},
                                                       {"val/a/response_length", 7}});
  CHECK(recorded_figures("", figures) == MetricValues{{"val/score/mean", 0.5}});
  CHECK(recorded_scores(4) == std::vector<std::string>{"avg@4", "pass@2", "pass@4", "maj@4"});
  figures.samples = 1;
  CHECK(recorded_figures("a", figures) ==
        MetricValues{{"val/a/avg@1", 0.5}, {"val/a/response_length", 7}});
  CHECK(recorded_scores(1) == std::vector<std::string>{"avg@1"});
}
