// SPDX-License-Identifier: Apache-2.0
#include "train/TrainJob.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>

#include "base/Error.hpp"
#include "io/Hdf5File.hpp"
#include "results/MetricTable.hpp"
#include "simulate/LengthLaw.hpp"
#include "train/TrainRuns.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
namespace fs = std::filesystem;

TEST_CASE("rollouts have the same bits for every layout of generation and training") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"), '2');
  std::vector<RolloutRecord> first;
  for (const int generation_tp : {1, world_size()})
    for (const int train_tp : {1, world_size()}) {
      RunOptions options = small_run(f.path("model"), f.path("run"));
      options.rollout.tp = generation_tp;
      options.training.tp = train_tp;
      options.training.iterations = 1;
      run(f.ranks, options);
      auto records = read_rollouts(f.path("run") + "/rollouts/iter_000001.h5").records;
      REQUIRE(records.size() == 16);
      for (RolloutRecord& r : records) {  // where it was made is all that may differ
        REQUIRE(r.layout.size() == 1);
        CHECK(r.layout.front().tp == generation_tp);
        r.layout.clear();
      }
      if (first.empty()) first = records;
      CHECK(records == first);
    }
}

TEST_CASE("training log-probs equal those of the rollout, and the KL to itself is zero") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"));
  RunOptions options = small_run(f.path("model"), f.path("run"));
  options.experience.kl.coef = 0.1;
  options.training.mini_batches = 1;
  options.rollout.sampling.temperature = 0.8f;
  run(f.ranks, options);
  if (f.ranks.rank() != 0) return;
  const auto records = read_metrics_log(f.path("run") + "/metrics.jsonl");
  REQUIRE(records.size() >= 2);
  CHECK(read_rollouts(f.path("run") + "/rollouts/iter_000001.h5")
            .records.front()
            .kept_mass.empty());  // nothing is cut
  for (const auto& record : records) {
    const std::map<std::string, double> values(record.values.begin(), record.values.end());
    CHECK(!values.contains("adaptive/switches"));  // a static run
    for (const auto& [name, value] : values) {
      INFO(name);
      CHECK(meaning_of("/metrics/" + name) != nullptr);
    }
    REQUIRE(values.contains("training/rollout_log_probs_diff_max"));
    REQUIRE(values.contains("actor/kl_loss"));
    CHECK(values.at("training/rollout_log_probs_diff_max") == 0.0);
    if (record.iteration == 1) CHECK(values.at("actor/kl_loss") == 0.0);
    if (record.iteration == 2) CHECK(values.at("actor/kl_loss") > 0.0);
  }
}

TEST_CASE("a resumed run has the bits of a straight one") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"));
  RunOptions options = small_run(f.path("model"), "");
  options.training.iterations = 3;
  // Two ranks share the state of one shard out, three keep shards that overlap.
  options.training.tp = world_size() == 3 ? 3 : 1;
  f.run_straight_and_in_parts(options);
  const bool moved = f.weights("straight", 3) != slurp(f.path("model") + "/model.safetensors");
  CHECK(moved);
  if (f.ranks.rank() == 0) CHECK(read_metrics_log(f.path("parts") + "/metrics.jsonl").size() == 3);
}

TEST_CASE("an adaptive KL coefficient goes on where it stopped") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"));
  RunOptions options = small_run(f.path("model"), "");
  options.training.iterations = 3;
  options.experience.advantage.estimator = AdvantageEstimator::kReinforcePlusPlus;
  KlOptions& kl = options.experience.kl;
  kl.coef = 0.5;
  kl.place = KlPlace::kReward;
  kl.control = KlControl::kAdaptive;
  kl.horizon = 16;  // samples of an iteration: at most a fifth up or down
  f.run_straight_and_in_parts(options);
  if (f.ranks.rank() != 0) return;
  std::vector<double> coefficients;
  for (const char* name : {"straight", "parts"})
    for (const auto& record : read_metrics_log(f.path(name) + "/metrics.jsonl")) {
      const std::map<std::string, double> values(record.values.begin(), record.values.end());
      CHECK(!values.contains("actor/kl_loss"));
      CHECK(values.contains("actor/reward_kl_penalty"));
      CHECK(meaning_of("/metrics/actor/reward_kl_penalty_coeff") != nullptr);
      coefficients.push_back(values.at("actor/reward_kl_penalty_coeff"));
    }
  REQUIRE(coefficients.size() == 6);
  CHECK(coefficients[0] == 0.5);
  CHECK(coefficients[1] == 0.4);  // the KL of the model to itself is below the target
  CHECK(coefficients[2] != coefficients[1]);
  for (int i = 0; i < 3; ++i) CHECK(coefficients[i] == coefficients[i + 3]);
}

TEST_CASE("dynamic sampling fills iterations, goes on in the prompts, and resumes with its bits") {
  TrainRuns f;
  RunOptions options = small_run(TAPER_DATA_DIR "/model", "");
  options.rollout.samples = 2;  // alike rather often
  options.rollout.max_new_tokens = 64;
  options.rollout.sampling.top_p = 0.9f;
  options.data.task = "sum";
  options.dynamic.on = true;
  options.dynamic.max_rounds = 3;
  options.experience.correction.weights = ImportanceLevel::kToken;
  f.run_straight_and_in_parts(options);
  std::vector<std::vector<std::int32_t>> first_prompts;
  for (int iteration = 1; iteration <= 2; ++iteration) {
    const auto records = f.rollouts("straight", iteration);
    REQUIRE(records.size() == 8);
    for (std::size_t i = 0; i < records.size(); i += 2) {
      CHECK(records[i].id.prompt == records[i + 1].id.prompt);
      if (i > 0) CHECK(records[i].id.prompt > records[i - 1].id.prompt);
      const std::vector<std::int32_t> prompt(records[i].tokens.begin(),
                                             records[i].tokens.begin() + records[i].prompt_length);
      if (iteration == 1)
        first_prompts.push_back(prompt);
      else
        CHECK(std::find(first_prompts.begin(), first_prompts.end(), prompt) == first_prompts.end());
    }
  }
  if (f.ranks.rank() != 0) return;
  double rounds = 0;
  for (const auto& record : read_metrics_log(f.path("straight") + "/metrics.jsonl")) {
    const std::map<std::string, double> values(record.values.begin(), record.values.end());
    const double r = values.at("train/num_gen_batches");
    CHECK((r >= 1 && r <= 3));
    CHECK(values.at("rollout/groups_dropped") + values.at("rollout/groups_surplus") == 4 * (r - 1));
    CHECK(values.at("training/rollout_log_probs_diff_max") == 0.0);
    CHECK(values.at("rollout_corr/rollout_is_min") < 1.0);  // nucleus sampling cuts
    CHECK(values.at("rollout_corr/rollout_is_max") <= 1.0);
    for (const auto& [name, value] : values) CHECK(meaning_of("/metrics/" + name) != nullptr);
    rounds += r;
  }
  CHECK(rounds > 2);  // or there was nothing to test
}

TEST_CASE("rounds of tail batching resume with their bits") {
  TrainRuns f;
  RunOptions options = small_run(TAPER_DATA_DIR "/model", "");
  options.rollout.max_new_tokens = 64;
  options.data.task = "sum";
  options.rollout.rounds = {RoundMode::kTail, 1.5, 1.0};
  options.training.iterations = 4;
  f.run_straight_and_in_parts(options);
  if (f.ranks.rank() != 0) return;
  std::set<std::int64_t> numbers;
  for (int n = 1; n <= 3; ++n) {
    const auto metrics = f.metrics("parts", n);
    CHECK(metrics.at("rollout/long_rounds") == (n == 3 ? 1 : 0));
    CHECK(metrics.at("rollout/waiting_prompts") == (n % 3) * 2);
    const Hdf5File file =
        Hdf5File::open_read(f.path("parts") + "/rollouts/iter_00000" + std::to_string(n) + ".h5");
    for (const std::int64_t number : file.read<std::int64_t>("/stream_index").values)
      numbers.insert(number);
  }
  CHECK(numbers.size() == 12);
  CHECK(*numbers.rbegin() == 11);
}

TEST_CASE("another run's checkpoint begins a run of its own with the same bits") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"));
  RunOptions options = small_run(f.path("model"), f.path("first"));
  options.training.iterations = 3;
  run(f.ranks, options);
  barrier(f.ranks.world());
  RunOptions other = options;
  other.output = f.path("other");
  other.training.iterations = 2;
  run(f.ranks, other, f.path("first") + "/checkpoints/iter_000001");
  CHECK(fs::exists(f.path("other") + "/checkpoints/iter_000001/manifest.json"));  // its own
  CHECK_THROWS_MATCHES(run(f.ranks, other, f.path("first")), Error,
                       MessageMatches(ContainsSubstring("another run")));
  other.training.iterations = 3;
  run(f.ranks, other, "auto");
  barrier(f.ranks.world());
  const std::string weights = "/checkpoints/iter_000003/model.safetensors";
  const bool same = slurp(f.path("first") + weights) == slurp(f.path("other") + weights);
  CHECK(same);
  std::vector<std::int64_t> iterations;
  for (const auto& record : read_metrics_log(f.path("other") + "/metrics.jsonl"))
    iterations.push_back(record.iteration);
  CHECK(iterations == std::vector<std::int64_t>{2, 3});
  CHECK(read_metrics_log(f.path("first") + "/metrics.jsonl").size() == 3);  // as it was
}

TEST_CASE("the last weights are evaluated, once, by whichever job comes so far") {
  TrainRuns f;
  RunOptions options = small_run(TAPER_DATA_DIR "/model", f.path("run"));  // it has some right
  options.evaluation.every = 2;
  options.checkpoint.every = 0;
  options.evaluation.prompts = 24;
  options.rollout.max_new_tokens = 80;
  options.schedule.peak = 1e-5;
  options.data.task = "sum";
  const auto run_all = [&](const RunOptions& o, const char* resume) {
    run(f.ranks, o, resume);
    barrier(f.ranks.world());  // rank 0 writes last
  };
  run_all(options, "none");
  RunOptions longer = options;  // whose third iteration begins with the same weights
  longer.output = f.path("longer");
  longer.training.iterations = 3;
  run_all(longer, "none");
  const fs::path log = f.path("run") + "/metrics.jsonl";
  const auto score = [&](const fs::path& directory, std::int64_t iteration, const char* name) {
    double found = -1;
    for (const auto& record : read_metrics_log(directory / "metrics.jsonl"))
      for (const auto& [key, value] : record.values)
        if (record.iteration == iteration && key == name) found = value;
    return found;
  };
  const double last = score(f.path("run"), 2, "val/score/final");
  CHECK(last > 0);
  CHECK(last == score(f.path("longer"), 3, "val/score/mean"));
  CHECK(score(f.path("run"), 1, "val/score/final") == -1);

  const std::string whole = slurp(log);
  barrier(f.ranks.world());
  run_all(options, "auto");
  CHECK(slurp(log) == whole);
  barrier(f.ranks.world());
  if (f.ranks.rank() == 0)  // as if killed before
    fs::resize_file(log, whole.rfind('\n', whole.size() - 2) + 1);
  barrier(f.ranks.world());
  run_all(options, "auto");
  CHECK(slurp(log) == whole);
}

TEST_CASE("responses have the lengths of a law, or those of another run, in any layout") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"));
  RunOptions options = small_run(f.path("model"), f.path("law"));
  options.rollout.lengths = "heavy-tail";
  run(f.ranks, options);
  options.output = f.path("again");
  options.rollout.lengths = f.path("law");
  options.rollout.tp = f.ranks.size();
  options.seed = 7;  // the law would give others
  barrier(f.ranks.world());
  run(f.ranks, options);
  barrier(f.ranks.world());
  for (const int iteration : {1, 2}) {
    const auto expected = draw_lengths(LengthLaw::kHeavyTail, RunOptions().seed, iteration, 16, 24);
    for (const char* output : {"law", "again"}) {
      std::vector<int> found;
      for (const RolloutRecord& r : f.rollouts(output, iteration))
        found.push_back(r.response_length());
      CHECK(found == expected);
    }
  }
}

TEST_CASE("a damaged checkpoint is passed over for the one before") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"));
  const RunOptions options = small_run(f.path("model"), f.path("run"));
  run(f.ranks, options);
  const fs::path newest = f.path("run") + "/checkpoints/iter_000002";
  const auto damage = [&](const char* file, bool cut) {
    if (f.ranks.rank() == 0) {
      std::string data = slurp(newest / file);
      if (cut)
        data.resize(data.size() / 2);
      else
        data[data.size() - 100] ^= 0x10;
      std::ofstream(newest / file, std::ios::binary) << data;
    }
    barrier(f.ranks.world());
  };
  for (const char* file : {"state.h5", "model.safetensors"})
    for (const bool cut : {false, true}) {
      INFO(file << (cut ? " cut" : " flipped"));
      damage(file, cut);
      CHECK_THROWS_AS(run(f.ranks, options, newest.string()), Error);
      RunOptions on = options;
      on.training.iterations = 2;
      run(f.ranks, on,
          "auto");  // repeats iteration 2 from checkpoint 1, and writes checkpoint 2 anew
      CHECK_NOTHROW(run(f.ranks, on, newest.string()));
    }
}

TEST_CASE("lengths beyond the model's context are refused, however large") {
  TrainRuns f;
  for (const int length : {100'000, std::numeric_limits<int>::max()}) {
    RunOptions options = small_run(TAPER_DATA_DIR "/model", f.path("run"));
    options.rollout.max_new_tokens = length;
    CHECK_THROWS_MATCHES(TrainJob(options, "test", f.ranks, StopRequest()), Error,
                         MessageMatches(ContainsSubstring("Rollout/Max New Tokens") &&
                                        ContainsSubstring("the context of Model/Directory")));
  }
}

TEST_CASE("prompts that one rank reads otherwise are refused") {
  TrainRuns f;
  if (f.ranks.size() == 1) return;
  make_model(f.ranks, f.path("model"));
  const bool is_last = f.ranks.rank() == f.ranks.size() - 1;
  const auto file = [&](const std::string& name, bool differs) {
    const std::string path = f.path(name + std::to_string(f.ranks.rank()));
    spill(path, std::string(R"({"prompt": "1 + 1 =", "ground_truth": ")") + (differs ? "3" : "2") +
                    "\"}\n");
    return path;
  };
  RunOptions options = small_run(f.path("model"), f.path("run"));
  options.rule = RewardRule::kExact;
  options.data.prompts = {file("same", false)};
  options.data.evaluation_prompts = options.data.prompts.front();
  options.evaluation.every = 1;
  CHECK_NOTHROW(TrainJob(options, "test", f.ranks, StopRequest()));
  const auto is_refused = [&] {
    CHECK_THROWS_MATCHES(TrainJob(options, "test", f.ranks, StopRequest()), Error,
                         MessageMatches(ContainsSubstring("the prompts: ranks 0 and " +
                                                          std::to_string(f.ranks.size() - 1))));
  };
  options.data.evaluation_prompts = file("held-out", is_last);
  is_refused();
  options.data.evaluation_prompts = options.data.prompts.front();
  options.data.prompts = {file("training", is_last)};
  is_refused();
}

TEST_CASE("a checkpoint that was about to be replaced is put back and used") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"));
  const RunOptions options = small_run(f.path("model"), f.path("run"));
  run(f.ranks, options);
  barrier(f.ranks.world());
  const fs::path newest = f.path("run") + "/checkpoints/iter_000002";
  if (f.ranks.rank() == 0) {
    std::ofstream(newest / "mark") << "the same";
    fs::rename(newest, newest.string() + ".old");
  }
  barrier(f.ranks.world());
  run(f.ranks, options, "auto");
  barrier(f.ranks.world());
  CHECK(slurp(newest / "mark") == "the same");
  CHECK(!fs::exists(newest.string() + ".old"));
}
