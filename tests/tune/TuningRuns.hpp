// SPDX-License-Identifier: Apache-2.0
//
// What tests of all fine-tuning jobs do alike.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/Checkpoint.hpp"
#include "comm/Collectives.hpp"
#include "io/Json.hpp"
#include "results/MetricsLog.hpp"
#include "run/ResumePoint.hpp"
#include "session/Ranks.hpp"
#include "tune/TuningOptions.hpp"

namespace taper::test {

// The settings that golden runs share.
inline void apply_golden_settings(TuningOptions& o, const Json& settings) {
  o.model.type = WeightType::kF32;
  o.epochs = settings["epochs"];
  o.validate_every = 1;
  o.training.max_tokens = 64;
  o.adamw = {settings["beta1"], settings["beta2"], settings["epsilon"], settings["weight_decay"],
             settings["clip_norm"]};
  o.schedule.kind = ScheduleOptions::Kind::kCosine;
  o.schedule.peak = settings["learning_rate"];
  o.schedule.warmup_steps = settings["warmup_steps"];
  o.schedule.final_share = settings["final_share"];
}

// Returns when rank 0, which writes last, has written all.
template <class Job, class Options>
ExitCode run_job(const Options& o, const Ranks& ranks, const std::string& resume) {
  const ExitCode code = Job(o, ranks).run(find_resume_point(ranks, resume, o.run_path()));
  barrier(ranks.world());
  return code;
}

// Leaves of a finished run what is there if it is killed after the checkpoint of that step,
// not its last.
inline void kill_behind(std::int64_t step, const TuningOptions& o, const Ranks& ranks) {
  const std::filesystem::path checkpoints = std::filesystem::path(o.run_path()) / "checkpoints";
  REQUIRE(CheckpointStore::list(checkpoints).size() > 1);
  if (ranks.rank() == 0) {
    CheckpointStore(checkpoints, 1).remove_after(step);
    std::filesystem::remove_all(o.output);
  }
  barrier(ranks.world());
}

// Figures of a run by step, those before the first one included.
using Series = std::vector<std::map<std::string, double>>;

inline Series metrics_of(const TuningOptions& o) {
  Series series;
  for (const auto& record : read_metrics_log(o.run_path() + "/metrics.jsonl")) {
    REQUIRE(record.iteration == std::ssize(series));
    series.emplace_back(record.values.begin(), record.values.end());
  }
  return series;
}

}  // namespace taper::test
