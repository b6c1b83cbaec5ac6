// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "comm/Collectives.hpp"
#include "results/MetricsLog.hpp"
#include "results/RolloutFile.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"
#include "train/TrainJob.hpp"
#include "tune/SftJob.hpp"

namespace taper::test {

// The shape of the embedded model, but with two KV heads: three ranks of a tensor-parallel group
// share them. And with fewer layers: what takes most of the time of these tests are collective
// writes of checkpoints, tensor by tensor, if more ranks than cores wait inside the library.
inline void make_shape(const Ranks& ranks, const std::filesystem::path& directory, char layers) {
  if (ranks.rank() == 0) {
    std::filesystem::copy(TAPER_DATA_DIR "/model", directory);
    std::string config = slurp(directory / "config.json");
    const auto change = [&](const std::string& key, char from, char to) {
      const auto at = config.find("\"" + key + "\": " + from);
      REQUIRE(at != std::string::npos);
      config[at + key.size() + 4] = to;
    };
    change("num_key_value_heads", '4', '2');
    change("num_hidden_layers", '4', layers);
    std::ofstream(directory / "config.json") << config;
  }
  barrier(ranks.world());
}

// A model of that shape with random weights, two optimizer steps old.
inline void make_model(const Ranks& ranks, const std::string& directory, char layers = '1') {
  const std::string shape = directory + ".shape";
  make_shape(ranks, shape, layers);
  SftOptions options;
  options.model.directory = shape;
  options.from_scratch = true;
  options.steps = 2;
  options.batch_tokens = 512;
  options.training.max_tokens = 512;
  options.schedule.peak = 1e-3;
  options.output = directory;
  SftJob(options, ranks).run();
}

inline RunOptions small_run(const std::string& model, const std::string& output) {
  RunOptions options;
  options.model.directory = model;
  options.rollout.prompts = 4;
  options.rollout.samples = 4;
  options.rollout.max_new_tokens = 24;
  options.rollout.kv_memory_mb = 64;
  options.training.iterations = 2;
  options.training.max_tokens = 256;
  options.schedule.peak = 1e-3;
  options.loss.entropy_coef = 0.05;  // random weights earn no reward: something must move them
  options.checkpoint.every = 1;
  options.checkpoint.keep = 8;
  options.output = output;
  return options;
}

// `spawner`: of workers, if a reward is a command.
inline void run(const Ranks& ranks, const RunOptions& options, const std::string& resume = "none",
                Spawner* spawner = nullptr) {
  const ResumePoint from = find_resume_point(ranks, resume, options.output);
  TrainJob(options, "test", ranks, StopRequest(), spawner).run(from);
}

// Runs below a scratch folder.
struct TrainRuns : TestRanks {
  std::string path(const std::string& name) const { return (scratch / name).string(); }

  // What iteration n left in the outputs of run_straight_and_in_parts.
  std::string weights(const std::string& output, int n) const {
    return slurp(path(output) + "/checkpoints/iter_00000" + std::to_string(n) +
                 "/model.safetensors");
  }
  std::vector<RolloutRecord> rollouts(const std::string& output, int n) const {
    return read_rollouts(path(output) + "/rollouts/iter_00000" + std::to_string(n) + ".h5").records;
  }

  // The figures of an iteration, from the log of a run; rank 0 has them.
  std::map<std::string, double> metrics(const std::string& output, std::int64_t n) const {
    std::map<std::string, double> found;
    for (const auto& record : read_metrics_log(path(output) + "/metrics.jsonl"))
      if (record.iteration == n) found.insert(record.values.begin(), record.values.end());
    return found;
  }

  // Runs to "straight" in one job and to "parts" in a job per iteration, each of which resumes:
  // the same rollouts in every iteration, and the same weights at the end. The options' output is
  // not used.
  void run_straight_and_in_parts(RunOptions options) {
    const int iterations = options.training.iterations;
    options.output = path("straight");
    run(ranks, options);
    options.output = path("parts");
    for (int until = 1; until <= iterations; ++until) {
      options.training.iterations = until;
      run(ranks, options, "auto");
    }
    barrier(ranks.world());
    const bool same_weights = weights("straight", iterations) == weights("parts", iterations);
    CHECK(same_weights);
    for (int n = 1; n <= iterations; ++n) CHECK(rollouts("straight", n) == rollouts("parts", n));
  }

  Scratch scratch;
};

}  // namespace taper::test
