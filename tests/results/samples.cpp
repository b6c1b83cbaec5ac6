// SPDX-License-Identifier: Apache-2.0
//
// samples <directory>: reads python.safetensors there into python.json, then writes one file of
// each kind, with content that readers.py computes again.
#include <mpi.h>

#include <filesystem>
#include <iostream>
#include <numeric>
#include <string>

#include "base/Error.hpp"
#include "io/Json.hpp"
#include "io/MpiCall.hpp"
#include "io/Safetensors.hpp"
#include "io/SafetensorsWriter.hpp"
#include "results/MetricsLog.hpp"
#include "results/RolloutFile.hpp"
#include "results/RunFile.hpp"

namespace {

using namespace taper;

std::vector<float> eighths(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 0.125f * static_cast<float>(i) - 10;
  return values;
}

void write_weights(const std::filesystem::path& directory) {
  SafetensorsWriter writer(directory / "taper.safetensors", {{"bf16", TensorType::kBf16, {7, 11}},
                                                             {"f32", TensorType::kF32, {3, 5, 2}},
                                                             {"empty", TensorType::kF32, {0, 2}},
                                                             {"scalar", TensorType::kF32, {}}});
  writer.write_block("bf16", 0, 7, 0, 11, eighths(77));
  writer.write_block("f32", 0, 3, 0, 10, eighths(30));
  writer.write_block("scalar", 0, 1, 0, 1, std::vector<float>{2.5f});
  writer.commit();
}

// The tensors of Python's file, widened, as JSON.
void read_weights(const std::filesystem::path& directory) {
  const auto file = SafetensorsFile::open(directory / "python.safetensors");
  Json all;
  for (const auto& name : file.names()) {
    const auto& view = file.tensor(name);
    Json entry = {{"dtype", to_string(view.type)}, {"shape", view.shape}};
    if (view.type == TensorType::kF32 || view.type == TensorType::kF16 ||
        view.type == TensorType::kBf16) {
      std::vector<float> values(static_cast<std::size_t>(view.rows() * view.columns()));
      file.read_f32_block(name, 0, view.rows(), 0, view.columns(), values);
      entry["values"] = values;
    }
    all[name] = entry;
  }
  write_json_file(directory / "python.json", all);
}

void write_run(const std::filesystem::path& directory) {
  RunFile run(directory / "run.h5");
  run.set_config("Seed: 1\n");
  MetricsLog log(directory / "metrics.jsonl", OpenMode::kTruncate);
  for (int i = 0; i < 5; ++i) {
    const MetricValues values = {{"timing_s/gen", 0.1 * i}, {"critic/score/mean", 1.0 / (1 + i)}};
    run.add_metrics(i, values);
    log.append(values, i);
    run.add_timing(i, {"gen", 1, 2, 3});
    run.add_lengths(i, std::vector<int>{i, i + 1});
    run.add_record("layouts", i, {{"layout", i < 3 ? "1x2" : "2+1+1"}, {"alive", 9 - i}});
  }
  run.save();
}

void write_samples(const std::filesystem::path& directory) {
  std::vector<RolloutRecord> mine;
  const int rank = detail::comm_rank(MPI_COMM_WORLD), ranks = detail::comm_size(MPI_COMM_WORLD);
  for (int group = rank; group < 50; group += ranks) {
    RolloutRecord record;
    record.id.prompt = group;
    record.prompt_length = 2;
    record.tokens.resize(static_cast<std::size_t>(2 + 10 * group));
    std::iota(record.tokens.begin(), record.tokens.end(), group);
    record.log_probs.assign(static_cast<std::size_t>(10 * group), -0.5f);
    record.rewards = {1};
    record.finish = FinishReason::kLength;
    mine.push_back(std::move(record));
  }
  write_rollouts(directory / "rollouts.h5", MPI_COMM_WORLD, mine,
                 {.iteration = 3, .reward_names = {"correct"}, .bytes_per_writer = 1});
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    TAPER_VALIDATE(argc == 2, "usage: samples DIRECTORY");
    const std::filesystem::path directory = argv[1];
    if (detail::comm_rank(MPI_COMM_WORLD) == 0) {
      read_weights(directory);
      write_weights(directory);
      write_run(directory);
    }
    write_samples(directory);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
