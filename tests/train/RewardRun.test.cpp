// SPDX-License-Identifier: Apache-2.0
//
// Training runs whose rewards are commands.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <map>

#include "train/TrainRuns.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("a dropped response is recorded, but neither trained nor counted in its group") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"));
  RunOptions options = small_run(f.path("model"), f.path("run"));
  options.training.iterations = 1;
  RewardOptions& shorter = options.rewards.emplace_back();
  shorter.name = "shorter";
  shorter.kind = RewardKind::kLength;
  shorter.length = {0, 0.25, -100.0};
  RewardOptions& judge = options.rewards.emplace_back();
  judge.name = "judge";
  judge.kind = RewardKind::kCommand;
  judge.command.command = {TAPER_GOLDEN_DIR "/../reward/worker.sh", "first"};
  judge.command.on_error = OnError::kDrop;
  judge.weight = 2.0;
  Spawner spawner;
  run(f.ranks, options, "none", &spawner);
  const RolloutSet set = read_rollouts(f.path("run") + "/rollouts/iter_000001.h5");
  CHECK(set.reward_names == std::vector<std::string>{"shorter", "judge"});
  REQUIRE(set.records.size() == 16);
  double scores = 0.0;
  std::map<std::int64_t, double> advantages;
  for (const RolloutRecord& r : set.records) {
    const float length = -0.25f * static_cast<float>(r.response_length());
    CHECK(r.rewards[0] == length);
    advantages[r.id.prompt] += r.advantage;
    if (r.id.sample == 0) {
      CHECK(std::isnan(r.rewards[1]));
      CHECK(r.advantage == 0.0);
    } else {
      CHECK(r.rewards[1] == 0.5f);
      scores += length + 2.0 * 0.5;
    }
  }
  for (const auto& [group, sum] : advantages) CHECK(std::abs(sum) < 1e-5);  // of three, not of four
  if (f.ranks.rank() != 0) return;
  const auto record = read_metrics_log(f.path("run") + "/metrics.jsonl").front();
  const std::map<std::string, double> values(record.values.begin(), record.values.end());
  CHECK(std::abs(values.at("critic/score/mean") - scores / 12) < 1e-5);
  CHECK(values.at("reward/judge/failed") == 4);
  CHECK(values.at("training/rollout_log_probs_diff_max") == 0.0);
}

TEST_CASE("a resumed run knows how long good answers take") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"));
  RunOptions options = small_run(f.path("model"), f.path("run"));
  options.data.prompts = {f.path("prompts.jsonl")};  // as many as an iteration has: all come again
  if (f.ranks.rank() == 0) {
    std::string lines;
    for (const char* sum : {"1 + 1", "1 + 2", "1 + 3", "1 + 4"})
      lines += std::string(R"({"prompt": ")") + sum + R"( =", "ground_truth": "?"})" + "\n";
    spill(options.data.prompts.front(), lines);
  }
  barrier(f.ranks.world());
  RewardOptions& judge = options.rewards.emplace_back();
  judge.name = "judge";
  judge.kind = RewardKind::kCommand;
  judge.command.command = {TAPER_GOLDEN_DIR "/../reward/worker.sh", "tires"};  // all answers good
  judge.command.workers = 1;  // at most one first answer a rank, of four to each prompt
  judge.command.on_error = OnError::kDrop;
  judge.adaptive_timeout = {true, 1.5, 30.0, 60.0};
  Spawner spawner;
  for (const int iterations : {1, 2}) {
    options.training.iterations = iterations;
    run(f.ranks, options, "auto", &spawner);
  }
  if (f.ranks.rank() != 0) return;
  CHECK(f.metrics("run", 1).at("reward/judge/anchor_hits") == 0);
  CHECK(f.metrics("run", 2).at("reward/judge/anchor_hits") == 4);
  CHECK(f.metrics("run", 2).at("reward/judge/cut_short") == 0);
}
