// SPDX-License-Identifier: Apache-2.0
#include "run/IterationLog.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "base/Timer.hpp"
#include "results/HeldOutNames.hpp"

namespace taper {
namespace {

// " 0.250", or of named sets " sums 0.250 gcd 0.500"; empty if there is no such figure.
std::string held_out_text(const MetricValues& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    const auto parts = parse_held_out_name(name);
    if (!parts || !parts->is_mean_score()) continue;
    text += (parts->set.empty() ? "" : " " + parts->set) + format_text(" %.3f", value);
  }
  return text;
}

// What a run loses that goes on with GPUs that round differently, or with CPUs; empty if it does
// not.
std::string processor_change(const RunFile& so_far, const std::map<std::string, std::string>& job) {
  if (so_far.machine("ranks").empty()) return "";  // it begins
  const auto text = [](const std::string& capability) {
    return capability.empty() ? "CPUs" : "GPUs of compute capability " + capability;
  };
  const auto found = job.find("gpu_capability");
  const std::string before = text(so_far.machine("gpu_capability")),
                    now = text(found == job.end() ? "" : found->second);
  if (before == now) return "";
  return "the run was computed on " + before + " so far, and from here on it is on " + now +
         ": unless Model/Arithmetic is f32, results are close to those of a run on one of them, "
         "not equal";
}

}  // namespace

IterationLog::IterationLog(const RunDirectory& directory, const std::string& config,
                           const std::map<std::string, std::string>& job, std::int64_t finished)
    : first_iteration_(finished + 1),
      log_(directory.metrics(), finished > 0 ? OpenMode::kAppend : OpenMode::kTruncate),
      run_file_(directory.run_file()) {
  if (finished > 0) {
    log_.truncate_after(finished);
    const auto records = read_metrics_log(directory.metrics());
    // The results of a run that begins with another one's checkpoint begin here.
    if (!records.empty() || std::filesystem::exists(directory.run_file())) {
      run_file_ = RunFile::rebuild_from(directory.run_file(), directory.metrics());
      run_file_.truncate_after(finished);
    }
    for (const auto& record : records) {
      const bool is_final = !record.values.empty() && is_final_name(record.values.front().first);
      if (!is_final) first_iteration_ = std::min(first_iteration_, record.iteration);
      if (is_final && record.iteration == finished) has_final_evaluation_ = true;
    }
  }
  if (const std::string text = processor_change(run_file_, job); !text.empty()) TAPER_WARN(text);
  run_file_.set_config(config);
  run_file_.set_machine(job);
}

void IterationLog::require_readable(const RunDirectory& directory) {
  const std::filesystem::path log = directory.metrics();
  if (std::filesystem::exists(log)) read_metrics_log(log);
}

std::string IterationLog::lost_metrics(const RunDirectory& directory, const std::string& unit) {
  const std::filesystem::path log = directory.metrics();
  // Each run has made the log before run.h5.
  if (std::filesystem::exists(log) || !std::filesystem::exists(directory.run_file())) return "";
  return path_text(log) + " is missing: the metrics of all earlier " + unit +
         "s are lost, also in run.h5, which is made from it; if you have a copy of the file, put "
         "it back before the run continues";
}

void IterationLog::add(std::int64_t iteration, MetricValues metrics,
                       const std::vector<PhaseTiming>& timing, const std::vector<int>& lengths) {
  for (const PhaseTiming& t : timing) {
    metrics.emplace_back("timing_s/" + t.phase, t.max);
    run_file_.add_timing(iteration, t);
  }
  // What this call takes can only be told by the next one.
  metrics.emplace_back("timing_s/record", std::exchange(record_s_, 0.0));
  const Timer timer;
  has_final_evaluation_ = false;  // it was of weights that are not the last ones now
  log_.append(metrics, iteration);
  describe_held_out(metrics);
  run_file_.add_metrics(iteration, metrics);
  run_file_.add_lengths(iteration, lengths);
  run_file_.save_if_due(2.0);
  record_s_ += timer.seconds();
  print_line(iteration, metrics);
}

void IterationLog::flush() {
  const Timer timer;
  run_file_.save();
  record_s_ += timer.seconds();
}

void IterationLog::add_values(std::int64_t iteration, const MetricValues& metrics) {
  log_.append(metrics, iteration);
  describe_held_out(metrics);
  run_file_.add_metrics(iteration, metrics);
  run_file_.save_if_due(2.0);
}

// The names of sets are the user's, so the table of metrics does not have them.
void IterationLog::describe_held_out(const MetricValues& metrics) {
  for (const auto& [name, unused] : metrics)
    if (const auto meaning = held_out_meaning(name))
      run_file_.describe("/metrics/" + name, meaning->units, meaning->description);
}

void IterationLog::print_line(std::int64_t iteration, const MetricValues& m) {
  if (lines_++ % 20 == 0)
    TAPER_INFO(
        " iter    reward   entropy  len mean   max   grad norm "
        "   gen s  train s  other s   step s  tok/s/rank   exact");
  const double generate = value_of(m, "timing_s/gen");
  double train = 0.0;
  for (const char* update : {"timing_s/update_critic", "timing_s/update_actor"})
    if (const double seconds = value_of(m, update); !std::isnan(seconds)) train += seconds;
  const double step = value_of(m, "perf/time_per_step");
  const auto of_policy = [&](const char* name) {  // not if the critic learned alone
    const double value = value_of(m, name);
    return std::isnan(value) ? std::string("-") : format_text("%.3f", value);
  };
  char line[200];
  const double difference = value_of(m, "training/rollout_log_probs_diff_max");
  std::snprintf(line, sizeof line,
                "%5lld  %8.3f  %8s  %8.1f %5.0f  %10s %8.2f %8.2f %8.2f %8.2f %11.0f  %6s",
                static_cast<long long>(iteration), value_of(m, "critic/score/mean"),
                of_policy("actor/entropy").c_str(), value_of(m, "response_length/mean"),
                value_of(m, "response_length/max"), of_policy("actor/grad_norm").c_str(), generate,
                train, std::max(step - generate - train, 0.0), step, value_of(m, "perf/throughput"),
                std::isnan(difference) ? "-"
                : difference == 0.0    ? "yes"
                                       : "NO");
  std::string text = line;
  if (const double loss = value_of(m, "critic/vf_loss"); !std::isnan(loss))
    text += format_text("   value loss %.4f", loss);
  if (const std::string figures = held_out_text(m); !figures.empty())
    text += "   held-out" + figures;
  if (const double v = value_of(m, "adaptive/switches"); v > 0)
    text += "   " + count_text(static_cast<std::int64_t>(v), "layout change");
  if (value_of(m, "adaptive/advised") > 0) text += "   layout change advised";
  TAPER_INFO(text);
}

void IterationLog::add_final_evaluation(std::int64_t iteration, const MetricValues& figures) {
  MetricValues renamed;
  for (const auto& [name, value] : figures) renamed.emplace_back(final_name(name), value);
  add_values(iteration, renamed);
  TAPER_INFO("held-out after iteration " << iteration << ":" << held_out_text(figures));
}

}  // namespace taper
