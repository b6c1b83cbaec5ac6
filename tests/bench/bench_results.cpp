// SPDX-License-Identifier: Apache-2.0
//
// Time to write the results of a run on one rank: run.h5 as it grows, a line of metrics.jsonl, and
// a rollout file. Prints medians.
//
//   bench_results [directory] [most iterations]
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/Timer.hpp"
#include "results/FileSchema.hpp"
#include "results/MetricsLog.hpp"
#include "results/RolloutFile.hpp"
#include "results/RunFile.hpp"

using namespace taper;

namespace {

constexpr int kRepeats = 9, kSamples = 128, kResponse = 200;

template <class Work>
double median_ms(const Work& work) {
  std::vector<double> times;
  for (int i = 0; i < kRepeats; ++i) {
    const Timer timer;
    work(i);
    times.push_back(1e3 * timer.seconds());
  }
  std::sort(times.begin(), times.end());
  return times[kRepeats / 2];
}

MetricValues every_metric(int iteration) {
  MetricValues values;
  for (const MetricMeaning& m : metric_table())
    if (m.name.find('<') == std::string::npos) values.emplace_back(m.name, 0.5 * iteration);
  return values;
}

RecordValue value_of(StoredType type, int iteration) {
  if (type == StoredType::kText) return "2x1";
  if (type == StoredType::kI64) return iteration;
  return 0.5 * iteration;
}

// An iteration with all metrics and phases, and four changes of layout with their decisions.
void add_iteration(RunFile& run, int iteration) {
  run.add_metrics(iteration, every_metric(iteration));
  for (const MetricMeaning& phase : phase_table()) run.add_timing(iteration, {phase.name, 1, 2, 3});
  run.add_lengths(iteration, std::vector<int>(kSamples, kResponse));
  for (const RecordTable& table : generation_tables()) {
    RecordRow row;
    for (const ColumnRule& column : table.columns)
      if (column.name.find('<') == std::string::npos)
        row.emplace_back(column.name, value_of(column.type, iteration));
    for (int i = 0; i < 4; ++i) run.add_record(table.name, iteration, row);
  }
}

std::vector<RolloutRecord> samples() {
  std::vector<RolloutRecord> records(kSamples);
  for (int i = 0; i < kSamples; ++i) {
    RolloutRecord& r = records[static_cast<std::size_t>(i)];
    r.id.prompt = i / 8;
    r.id.sample = i % 8;
    r.prompt_length = 20;
    for (int k = 0; k < 20 + kResponse; ++k) r.tokens.push_back(i * 7919 % 311 + k * 31 % 257);
    for (int k = 0; k < kResponse; ++k)
      r.log_probs.push_back(-0.001f * static_cast<float>(i * 7919 % 997 + k * 31 % 991));
    r.rewards = {1};
    r.layout = {{0, 1, 0}};
  }
  return records;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const std::filesystem::path folder = argc > 1 ? argv[1] : "bench-results";
  const int most = argc > 2 ? std::atoi(argv[2]) : 1000;
  std::filesystem::create_directories(folder);
  std::printf("run.h5, metrics and layout tables in full\n");
  RunFile run(folder / "run.h5");
  int iteration = 0;
  for (int size = 10; size <= most; size *= 10) {
    while (iteration < size) add_iteration(run, ++iteration);
    const double ms = median_ms([&](int) { run.save(); });
    std::printf("  %5d iterations: %7.1f ms, %6.2f MB, at most every %.0f s\n", size, ms,
                1e-6 * static_cast<double>(std::filesystem::file_size(folder / "run.h5")),
                std::max(2.0, 1e-3 * ms / RunFile::kMostShare));
  }
  MetricsLog log(folder / "metrics.jsonl", OpenMode::kTruncate);
  const double line = median_ms([&](int i) { log.append(every_metric(i), i); });
  const auto records = samples();
  const double rollouts = median_ms([&](int i) {
    write_rollouts(folder / "rollouts.h5", MPI_COMM_WORLD, records,
                   {.iteration = i, .reward_names = {"score"}});
  });
  std::printf(
      "a line of metrics.jsonl: %.2f ms\nrollouts, %d samples of %d tokens: %.1f ms, %.2f MB\n",
      line, kSamples, kResponse, rollouts,
      1e-6 * static_cast<double>(std::filesystem::file_size(folder / "rollouts.h5")));
  MPI_Finalize();
}
