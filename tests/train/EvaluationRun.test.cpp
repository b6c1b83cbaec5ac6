// SPDX-License-Identifier: Apache-2.0
//
// Evaluations within training runs: several sets, the best checkpoint, an early end.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <map>

#include "comm/Collectives.hpp"
#include "io/Json.hpp"
#include "results/HeldOutNames.hpp"
#include "results/MetricsLog.hpp"
#include "results/RunDirectory.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"
#include "train/TrainJob.hpp"
#include "workers/Spawner.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
namespace fs = std::filesystem;

namespace {

struct Fixture : TestRanks {
  std::string path(const std::string& name) const { return (scratch / name).string(); }

  // The embedded model has some sums right; so large a rate makes it forget them.
  RunOptions options(const std::string& output, double rate = 3e-3) const {
    RunOptions o;
    o.model.directory = TAPER_DATA_DIR "/model";
    o.data.task = "sum";
    o.rollout.prompts = 4;
    o.rollout.samples = 4;
    o.rollout.max_new_tokens = 80;
    o.rollout.kv_memory_mb = 64;
    o.training.iterations = 5;
    o.training.max_tokens = 256;
    o.schedule.peak = rate;
    o.loss.entropy_coef = 0.05;
    o.checkpoint = {1, 1};
    o.output = path(output);
    return o;
  }
  void evaluate(RunOptions& o) const {
    o.evaluation.every = 1;
    EvaluationSetOptions sampled;
    sampled.prompts = 8;
    sampled.samples = 3;
    sampled.sampling.temperature = 0.8f;
    EvaluationSetOptions file;
    file.file = path("held_out.jsonl");
    file.rule = RewardRule::kGsm8kFlexible;
    file.max_new_tokens = 24;
    o.evaluation.sets = {{"file", file}, {"sums", sampled}};
    o.evaluation.best.metric = "val/sums/avg@3";
    if (ranks.rank() == 0)
      spill(file.file,
            "{\"prompt\": \"12+34=\", \"ground_truth\": \"46\"}\n"
            "{\"prompt\": \"20+30+40=\", \"ground_truth\": \"90\"}\n");
    barrier(ranks.world());
  }
  void run(const RunOptions& o, const std::string& resume) const {
    const ResumePoint from = find_resume_point(ranks, resume, o.output);
    CHECK(TrainJob(o, "test", ranks, StopRequest()).run(from) == ExitCode::kDone);
    barrier(ranks.world());
  }

  Scratch scratch;
};

using Values = std::map<std::string, double>;

// What the log has of an iteration, final figures included.
Values metrics_of(const std::string& output, std::int64_t iteration) {
  Values values;
  for (const auto& record : read_metrics_log(fs::path(output) / "metrics.jsonl"))
    if (record.iteration == iteration) values.insert(record.values.begin(), record.values.end());
  return values;
}

fs::path checkpoint(const std::string& output, std::int64_t iteration) {
  return fs::path(output) / "checkpoints" / iteration_name(iteration);
}

}  // namespace

TEST_CASE("named sets give their figures and leave no trace in the run") {
  Fixture f;
  RunOptions with = f.options("with", 1e-4), without = f.options("without", 1e-4);
  f.evaluate(with);
  with.training.iterations = without.training.iterations = 2;
  f.run(with, "none");
  f.run(without, "none");
  const std::string weights = "model.safetensors";
  CHECK(slurp(checkpoint(with.output, 2) / weights) ==
        slurp(checkpoint(without.output, 2) / weights));
  const Values first = metrics_of(with.output, 1), second = metrics_of(with.output, 2);
  for (const char* name : {"val/sums/avg@3", "val/sums/pass@2", "val/sums/pass@3", "val/sums/maj@3",
                           "val/sums/response_length", "val/file/avg@1"}) {
    INFO(name);
    REQUIRE(first.contains(name));
    CHECK(second.contains(name));
    CHECK(second.contains(final_name(name)));
    CHECK(!first.contains(final_name(name)));
  }
  CHECK(first.at("val/sums/avg@3") > 0);
  CHECK(first.at("val/sums/pass@3") >= first.at("val/sums/pass@2"));
  CHECK(!first.contains("val/file/maj@1"));
  CHECK(!first.contains("val/score/mean"));
}

TEST_CASE("sets without a rule of their own are judged by the rewards of the run") {
  Fixture f;
  RunOptions named = f.options("named", 1e-4), plain = f.options("plain", 1e-4);
  f.evaluate(named);
  plain.evaluation.every = 1;
  plain.evaluation.prompts = 8;
  for (RunOptions* o : {&named, &plain}) {
    o->training.iterations = 1;
    RewardOptions right;
    right.name = "right";
    right.kind = RewardKind::kTask;
    right.weight = 0.5;
    RewardOptions brief;
    brief.name = "brief";
    brief.kind = RewardKind::kLength;
    brief.length = {0, 0.001, -1.0};
    o->rewards = {right, brief};
    f.run(*o, "none");
  }
  for (const auto& [output, figure] :
       {std::pair(named.output, "val/sums/avg@3"), std::pair(plain.output, "val/score/mean")}) {
    INFO(figure);
    const Values values = metrics_of(output, 1);
    REQUIRE(values.contains(figure));
    for (const std::string place : {"val/reward", "val/final/reward"})
      REQUIRE(values.contains(place + "/right/mean"));
    const double right = values.at("val/reward/right/mean"),
                 brief = values.at("val/reward/brief/mean");
    CHECK(brief < 0.0);
    CHECK_THAT(values.at(figure), WithinAbs(0.5 * right + brief, 1e-6));
  }
  // By its own rule.
  const double of_file = metrics_of(named.output, 1).at("val/file/avg@1");
  CHECK(of_file * 2 == std::round(of_file * 2));
}

TEST_CASE("dropped responses do not count in held-out figures") {
  Fixture f;
  Spawner spawner;
  RunOptions o = f.options("dropped", 1e-4);
  f.evaluate(o);
  o.evaluation.best.metric.clear();
  o.training.iterations = 1;
  o.rewards.emplace_back().name = "right";
  o.rewards.back().kind = RewardKind::kTask;
  o.rewards.back().weight = 0.0;
  RewardOptions& judge = o.rewards.emplace_back();
  judge.name = "judge";
  judge.kind = RewardKind::kCommand;
  judge.command.command = {TAPER_GOLDEN_DIR "/../reward/worker.sh", "first"};  // 0.5, or an error
  judge.command.on_error = OnError::kDrop;
  judge.command.retries = 0;
  judge.command.components = {"style"};
  const ResumePoint from = find_resume_point(f.ranks, "none", o.output);
  CHECK(TrainJob(o, "test", f.ranks, StopRequest(), &spawner).run(from) == ExitCode::kDone);
  barrier(f.ranks.world());
  const Values values = metrics_of(o.output, 1);
  CHECK(values.at("val/sums/avg@3") == 0.5);  // 0 would count if the first samples did
  CHECK(values.at("val/reward/judge/failed") == 8);
  CHECK(values.contains("val/sums/pass@2"));
  CHECK(!values.contains("val/sums/pass@3"));  // no prompt has three scores
  CHECK(values.at("reward/judge/failed") == 4);
}

TEST_CASE(
    "the best checkpoint is kept, the run ends without progress, and resuming changes neither") {
  Fixture f;
  RunOptions before = f.options("before", 1e-5);
  before.training.iterations = 2;
  f.run(before, "none");
  // Goes on from weights that are good, and spoils them.
  RunOptions o = f.options("run");
  f.evaluate(o);
  o.training.iterations = 9;
  o.evaluation.best.patience = 2;
  f.run(o, before.output);
  const Json best = read_json_file(fs::path(o.output) / "best.json");
  REQUIRE(best["iteration"] == 2);
  CHECK(best["metric"] == "val/sums/avg@3");
  CHECK(best["value"] == metrics_of(o.output, 3).at("val/sums/avg@3"));
  CHECK(best["checkpoint"] == "checkpoints/iter_000002");
  CHECK(best["evaluations"].size() == 3);  // after iterations 2, 3 and 4
  CHECK(CheckpointStore::problems(checkpoint(o.output, 2)).empty());
  CHECK(!fs::exists(checkpoint(o.output, 3)));  // one is kept, besides the best
  CHECK(fs::exists(checkpoint(o.output, 4)));
  CHECK(metrics_of(o.output, 5).empty());
  CHECK(metrics_of(o.output, 4).contains("val/sums/final/avg@3"));
  const std::string status = slurp(o.output + "/status.json");
  CHECK_THAT(status, ContainsSubstring("\"completed\"") && ContainsSubstring("no more progress"));

  const std::string record = slurp(o.output + "/best.json"),
                    log = slurp(o.output + "/metrics.jsonl");
  barrier(f.ranks.world());
  f.run(o, "auto");  // there is nothing left to do
  CHECK(slurp(o.output + "/best.json") == record);
  CHECK(slurp(o.output + "/metrics.jsonl") == log);
  barrier(f.ranks.world());
  if (f.ranks.rank() == 0) fs::remove_all(checkpoint(o.output, 4));  // goes on after iteration 2
  barrier(f.ranks.world());
  f.run(o, "auto");
  CHECK(slurp(o.output + "/best.json") == record);
  for (const std::int64_t i : {3, 4})
    for (const auto& [name, value] : metrics_of(o.output, i))
      if (name.starts_with("val/")) {
        INFO(name);
        CHECK(log.find("\"" + name + "\"") != std::string::npos);
      }
  barrier(f.ranks.world());
  RunOptions longer = o;
  longer.evaluation.best.patience = 3;
  f.run(longer, "auto");
  CHECK(!metrics_of(o.output, 5).empty());
  CHECK(fs::exists(checkpoint(o.output, 2)));
}
