// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "results/MetricsLog.hpp"
#include "results/RunDirectory.hpp"
#include "results/RunFile.hpp"

namespace taper {

// The results of a run as they grow: metrics.jsonl, run.h5, the console line. Rank 0 only.
class IterationLog {
 public:
  // Goes on after `finished` iterations, 0 for a new run: what lies beyond in older results is
  // dropped. `job`: facts for /machine of run.h5.
  IterationLog(const RunDirectory& directory, const std::string& config,
               const std::map<std::string, std::string>& job, std::int64_t finished);

  // Throws Error if the results in a directory, which need not have any, cannot be gone on with:
  // a line of metrics.jsonl is broken. Changes nothing.
  static void require_readable(const RunDirectory& directory);

  // What is to be said of a run whose log of metrics was removed; empty if it was not. `unit` is
  // what the run calls an iteration.
  static std::string lost_metrics(const RunDirectory& directory, const std::string& unit);

  // lengths: of all responses, in tokens.
  void add(std::int64_t iteration, MetricValues metrics, const std::vector<PhaseTiming>& timing,
           const std::vector<int>& lengths);
  // Further values of an iteration, alone: a line of metrics.jsonl of their own.
  void add_values(std::int64_t iteration, const MetricValues& metrics);
  // For what others have to say of an iteration, before its add().
  RunFile& run_file() { return run_file_; }
  // The held-out figures after the last iteration of the run, in a line of its own.
  void add_final_evaluation(std::int64_t iteration, const MetricValues& figures);
  // Whether the results had it at the start for the iteration that is still the last one.
  bool has_final_evaluation() const { return has_final_evaluation_; }
  // The first iteration of this run: not 1 if it began with another run's checkpoint.
  std::int64_t first_iteration() const { return first_iteration_; }
  // Writes run.h5 now. Between such calls, what add() got is in there some seconds later only: a
  // checkpoint that is newer than run.h5 would leave a killed run without timing and lengths of its
  // last iterations.
  void flush();

 private:
  void print_line(std::int64_t iteration, const MetricValues& metrics);
  void describe_held_out(const MetricValues& metrics);

  bool has_final_evaluation_ = false;
  std::int64_t first_iteration_;
  int lines_ = 0;          // on the console, of this job
  double record_s_ = 0.0;  // spent on the files since the iteration before
  MetricsLog log_;
  RunFile run_file_;
};

}  // namespace taper
