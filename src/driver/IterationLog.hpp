// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/Timer.hpp"
#include "driver/GenerationRecord.hpp"
#include "driver/Ranks.hpp"
#include "io/MetricsLog.hpp"
#include "io/RunFile.hpp"
#include "predict/LatencyProfile.hpp"
#include "rl/CriticTrainer.hpp"
#include "rl/DynamicSampling.hpp"
#include "rl/Experience.hpp"
#include "rl/PolicyTrainer.hpp"
#include "rl/Rollout.hpp"

namespace taper {

// Seconds per phase of one iteration on this rank; names as in verl ("gen", "update_actor", ...).
class PhaseTimer {
 public:
  explicit PhaseTimer(Progress& progress) : progress_(&progress) {}

  // Ends the phase before and starts one; name is a string literal. A phase that comes again counts
  // on.
  void start(const char* phase);
  void stop();
  const std::vector<std::pair<std::string, double>>& seconds() const { return seconds_; }
  double total() const;

 private:
  Progress* progress_;
  Timer timer_;
  const char* phase_ = nullptr;
  std::vector<std::pair<std::string, double>> seconds_;
};

// Minimum, mean and maximum over ranks of each phase. All ranks timed the same phases. Collective
// over `group`.
std::vector<PhaseTiming> reduce_timing(const Group& group, const PhaseTimer& timer);

// Metrics of a rollout and of an update under the names that verl users know.
MetricValues rollout_metrics(const std::vector<Sample>& samples);
// kl_coef: of the KL in the loss; 0 without it.
MetricValues update_metrics(const UpdateReport& report, double kl_coef);
MetricValues critic_metrics(const CriticReport& report);
// Of the values, returns and advantages of the tokens that carry a loss; none where no token does.
MetricValues value_metrics(const std::vector<Sample>& samples);
// with_mismatch: the distribution that drew the tokens may differ from the trained one.
MetricValues experience_metrics(const ExperienceReport& report, const ExperienceOptions& options,
                                bool with_mismatch);

// Of dynamic sampling.
MetricValues group_metrics(const GroupSelection& groups);

// The results of a run as they grow: metrics.jsonl, run.h5, the console line. Rank 0 only.
class IterationLog {
 public:
  // Goes on after `finished` iterations, 0 for a new run: what lies beyond in older results is
  // dropped. `job`: facts for /machine of run.h5.
  IterationLog(const std::filesystem::path& directory, const std::string& config, const Facts& job,
               std::int64_t finished);

  // Throws Error where the results in a directory, which need not have any, cannot be gone on with:
  // a line of metrics.jsonl is broken. Changes nothing.
  static void require_readable(const std::filesystem::path& directory);

  // What is to be said of a run whose log of metrics was removed; empty where it was not.
  static std::string lost_metrics(const std::filesystem::path& directory);

  void add(std::int64_t iteration, MetricValues metrics, const std::vector<PhaseTiming>& timing,
           const std::vector<Sample>& samples);
  // Further values of an iteration, alone: a line of metrics.jsonl of their own.
  void add_values(std::int64_t iteration, const MetricValues& metrics);
  // The accounts of the generations' layouts (GenerationRecord.hpp).
  void add_generations(std::int64_t iteration, std::span<const GenerationReport> reports) {
    taper::add_generations(run_file_, iteration, reports);
  }
  // The held-out figures behind the last iteration of the run, in a line of its own.
  void add_final_evaluation(std::int64_t iteration, const MetricValues& figures);
  // Whether the results had it at the start for the iteration that is still the last one.
  bool has_final_evaluation() const { return has_final_evaluation_; }
  // The first iteration of this run: not 1 where it began with another run's checkpoint.
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
