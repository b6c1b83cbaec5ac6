// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/Checksum.hpp"
#include "io/Json.hpp"
#include "results/MetricsLog.hpp"
#include "results/RolloutFile.hpp"
#include "results/RunDirectory.hpp"
#include "results/RunFile.hpp"
#include "support/Scratch.hpp"

namespace taper::test {

// Two samples of one prompt, in ids of the embedded model, which are bytes, and 256 and 257 for the
// begin and the end of a sequence.
inline std::vector<RolloutRecord> small_samples() {
  RolloutRecord first;
  first.prompt_length = 3;
  first.tokens = {256, '1', '+', '2', 257};
  first.log_probs = {-0.5f, -1.0f};
  first.rewards = {1.0f};
  first.advantage = 0.5;
  RolloutRecord second = first;
  second.id.sample = 1;
  second.tokens = {256, '1', '+', '3', '4', '5'};
  second.log_probs = {-0.5f, -1.0f, -0.25f};
  second.rewards = {std::nanf("")};
  second.advantage = 0.0;
  second.finish = FinishReason::kLength;
  return {first, second};
}

// The directory of a run of two iterations as `taper train` leaves it, on one rank. Its checkpoint
// is a file and the manifest of it.
struct SmallRun {
  SmallRun() {
    MetricsLog metrics(log, OpenMode::kTruncate);
    for (int i = 1; i <= 2; ++i)
      metrics.append({{"actor/lr", 0.25 * i}, {"critic/score/mean", 0.5}}, i);
    write_run_file({2, 3});
    write_rollouts(rollouts, MPI_COMM_SELF, small_samples(),
                   {.iteration = 2, .reward_names = {"score"}});
    std::filesystem::create_directories(checkpoint);
    const std::string weights = "weights of iteration 2";
    spill(checkpoint / "model.safetensors", weights);
    Checksum64 sum;
    sum.add(std::as_bytes(std::span(weights.data(), weights.size())));
    OrderedJson manifest{{"iteration", 2}};
    manifest["files"]["model.safetensors"] = {{"bytes", weights.size()}, {"checksum", sum.value()}};
    write_json_file(checkpoint / "manifest.json", manifest);
  }

  // lengths: of the responses of iteration 2.
  void write_run_file(const std::vector<int>& lengths) const {
    RunFile out(run_file);
    out.set_config("Model:\n  Directory: " TAPER_DATA_DIR "/model\n");
    for (const MetricsRecord& record : read_metrics_log(log))
      out.add_metrics(record.iteration, record.values);
    out.add_lengths(2, lengths);
    out.save();
  }

  Scratch scratch;
  const std::filesystem::path directory = scratch.path();
  const std::filesystem::path log = scratch / "metrics.jsonl", run_file = scratch / "run.h5",
                              rollouts = RunDirectory(scratch.path()).rollout(2),
                              checkpoint = scratch / "checkpoints/iter_000002";
};

}  // namespace taper::test
