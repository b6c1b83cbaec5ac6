// SPDX-License-Identifier: Apache-2.0
#include "driver/IterationLog.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "driver/Evaluation.hpp"

namespace taper {
namespace {

// " 0.250", or of named sets " sums 0.250 gcd 0.500"; empty where there is no such figure.
std::string held_out_text(const MetricValues& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    const bool plain = name == "val/score/mean";
    const auto slash = name.rfind('/');
    if (!plain && !(name.starts_with("val/") && name.find("/avg@") == slash)) continue;
    text += (plain ? "" : " " + name.substr(4, slash - 4)) + format_text(" %.3f", value);
  }
  return text;
}

void add_statistics(MetricValues& out, const std::string& name, const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  out.emplace_back(name + "/mean", sum / static_cast<double>(values.size()));
  out.emplace_back(name + "/max", *std::max_element(values.begin(), values.end()));
  out.emplace_back(name + "/min", *std::min_element(values.begin(), values.end()));
}

}  // namespace

void PhaseTimer::start(const char* phase) {
  stop();
  progress_->set_phase(phase);
  phase_ = phase;
  timer_.restart();
}

void PhaseTimer::stop() {
  if (phase_ == nullptr) return;
  const auto same = std::find_if(seconds_.begin(), seconds_.end(),
                                 [&](const auto& entry) { return entry.first == phase_; });
  if (same != seconds_.end())
    same->second += timer_.seconds();
  else
    seconds_.emplace_back(phase_, timer_.seconds());
  phase_ = nullptr;
}

double PhaseTimer::total() const {
  double sum = 0;
  for (const auto& [phase, seconds] : seconds_) sum += seconds;
  return sum;
}

std::vector<PhaseTiming> reduce_timing(const Group& group, const PhaseTimer& timer) {
  std::vector<double> mine;
  for (const auto& [phase, seconds] : timer.seconds()) mine.push_back(seconds);
  std::vector<double> all(mine.size() * group.size());
  all_gather(group, all, mine);
  std::vector<PhaseTiming> timing;
  for (std::size_t p = 0; p < mine.size(); ++p) {
    PhaseTiming t{timer.seconds()[p].first, INFINITY, 0.0, 0.0};
    for (int r = 0; r < group.size(); ++r) {
      const double s = all[r * mine.size() + p];
      t.min = std::min(t.min, s);
      t.max = std::max(t.max, s);
      t.mean += s / group.size();
    }
    timing.push_back(t);
  }
  return timing;
}

MetricValues rollout_metrics(const std::vector<Sample>& samples) {
  MetricValues out;
  std::vector<double> score, reward, response, prompt;
  double clipped = 0;
  for (const Sample& s : samples) {
    if (!s.dropped) {
      score.push_back(s.score);
      reward.push_back(s.reward);
    }
    response.push_back(static_cast<double>(s.response.size()));
    prompt.push_back(static_cast<double>(s.prompt.size()));
    if (s.finish == FinishReason::kLength) clipped += 1.0;
  }
  add_statistics(out, "critic/score", score);
  add_statistics(out, "critic/rewards", reward);
  add_statistics(out, "response_length", response);
  out.emplace_back("response_length/clip_ratio", clipped / static_cast<double>(samples.size()));
  add_statistics(out, "prompt_length", prompt);
  return out;
}

MetricValues update_metrics(const UpdateReport& r, double kl_coef) {
  MetricValues out{{"actor/entropy", r.entropy},
                   {"actor/pg_loss", r.policy_loss},
                   {"actor/pg_clipfrac", r.clip_fraction},
                   {"actor/pg_clipfrac_lower", r.dual_clip_fraction},
                   {"actor/ppo_kl", r.ppo_kl},
                   {"actor/grad_norm", r.grad_norm},
                   {"actor/lr", r.learning_rate},
                   {"actor/skipped_steps", static_cast<double>(r.skipped + r.empty)},
                   {"training/rollout_probs_diff_max", r.prob_diff_max},
                   {"training/rollout_log_probs_diff_max", r.log_prob_diff_max}};
  if (kl_coef > 0.0) {
    out.emplace_back("actor/kl_loss", r.kl);
    out.emplace_back("actor/kl_coef", kl_coef);
  }
  return out;
}

MetricValues critic_metrics(const CriticReport& r) {
  return {{"critic/vf_loss", r.loss},
          {"critic/vf_clipfrac", r.clip_fraction},
          {"critic/vpred_mean", r.value_mean},
          {"critic/grad_norm", r.grad_norm},
          {"critic/lr", r.learning_rate},
          {"critic/skipped_steps", static_cast<double>(r.skipped + r.empty)}};
}

MetricValues value_metrics(const std::vector<Sample>& samples) {
  MetricValues out;
  std::vector<double> values, returns, advantages;
  for (const Sample& s : samples)
    for (std::size_t t = 0; t < s.response.size(); ++t) {
      if (!s.carries_loss(t)) continue;
      values.push_back(s.values[t]);
      returns.push_back(s.returns[t]);
      advantages.push_back(s.advantages[t]);
    }
  if (values.empty()) return out;
  add_statistics(out, "critic/values", values);
  add_statistics(out, "critic/returns", returns);
  add_statistics(out, "critic/advantages", advantages);
  out.emplace_back("critic/vf_explained_var", explained_variance(samples));
  return out;
}

MetricValues experience_metrics(const ExperienceReport& r, const ExperienceOptions& o,
                                bool with_mismatch) {
  MetricValues out;
  if (o.kl.in_reward())
    out.insert(out.end(),
               {{"actor/reward_kl_penalty", r.kl}, {"actor/reward_kl_penalty_coeff", r.kl_coef}});
  if (o.mask_truncated) out.emplace_back("rollout/truncated_masked", r.truncated_share);
  if (!with_mismatch) return out;
  const MismatchReport& m = r.mismatch;
  out.insert(out.end(), {{"rollout_corr/kl", m.kl},
                         {"rollout_corr/k3_kl", m.k3_kl},
                         {"rollout_corr/ppl_ratio", m.ppl_ratio},
                         {"rollout_corr/chi2_token", m.chi2_token},
                         {"rollout_corr/chi2_seq", m.chi2_seq},
                         {"rollout_corr/log_ratio_abs_max", m.log_ratio_abs_max}});
  if (o.correction.weights != ImportanceLevel::kNone)
    out.insert(out.end(), {{"rollout_corr/rollout_is_mean", m.weight_mean},
                           {"rollout_corr/rollout_is_min", m.weight_min},
                           {"rollout_corr/rollout_is_max", m.weight_max},
                           {"rollout_corr/rollout_is_eff_sample_size", m.effective_sample_size}});
  if (o.correction.rejection != RejectionLevel::kNone)
    out.insert(out.end(), {{"rollout_corr/rollout_rs_masked_fraction", m.rejected_tokens},
                           {"rollout_corr/rollout_rs_seq_masked_fraction", m.rejected_sequences}});
  return out;
}

MetricValues group_metrics(const GroupSelection& groups) {
  return {{"train/num_gen_batches", static_cast<double>(groups.rounds)},
          {"rollout/groups_dropped", static_cast<double>(groups.dropped)},
          {"rollout/groups_surplus", static_cast<double>(groups.surplus)},
          {"rollout/groups_filled", static_cast<double>(groups.filled)}};
}

IterationLog::IterationLog(const std::filesystem::path& directory, const std::string& config,
                           const Facts& job, std::int64_t finished)
    : first_iteration_(finished + 1),
      log_(directory / "metrics.jsonl", finished > 0 ? OpenMode::kAppend : OpenMode::kTruncate),
      run_file_(directory / "run.h5") {
  if (finished > 0) {
    log_.truncate_after(finished);
    const auto records = read_metrics_log(directory / "metrics.jsonl");
    // The results of a run that begins with another one's checkpoint begin here.
    if (!records.empty() || std::filesystem::exists(directory / "run.h5")) {
      run_file_ = RunFile::rebuild_from(directory / "run.h5", directory / "metrics.jsonl");
      run_file_.truncate_after(finished);
    }
    for (const auto& record : records) {
      const bool is_final =
          !record.values.empty() && Evaluation::is_final_name(record.values.front().first);
      if (!is_final) first_iteration_ = std::min(first_iteration_, record.iteration);
      if (is_final && record.iteration == finished) has_final_evaluation_ = true;
    }
  }
  run_file_.set_config(config);
  for (const auto& [name, value] : job) run_file_.set_machine(name, value);
}

void IterationLog::require_readable(const std::filesystem::path& directory) {
  const std::filesystem::path log = directory / "metrics.jsonl";
  if (std::filesystem::exists(log)) read_metrics_log(log);
}

std::string IterationLog::lost_metrics(const std::filesystem::path& directory) {
  const std::filesystem::path log = directory / "metrics.jsonl";
  // Each run has made the log before run.h5.
  if (std::filesystem::exists(log) || !std::filesystem::exists(directory / "run.h5")) return "";
  return path_text(log) +
         " is missing: the metrics of the iterations so far are lost, in run.h5 too, which has "
         "them from there; put the file back before the run goes on, where there is a copy";
}

void IterationLog::add(std::int64_t iteration, MetricValues metrics,
                       const std::vector<PhaseTiming>& timing, const std::vector<Sample>& samples) {
  std::vector<int> lengths;
  lengths.reserve(samples.size());
  for (const Sample& s : samples) lengths.push_back(static_cast<int>(s.response.size()));
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
    if (const std::string meaning = Evaluation::meaning(name); !meaning.empty())
      run_file_.describe("/metrics/" + name, name.ends_with("length") ? "token" : "1", meaning);
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
  const auto of_policy = [&](const char* name) {  // not where the critic learned alone
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
  TAPER_INFO(text);
}

void IterationLog::add_final_evaluation(std::int64_t iteration, const MetricValues& figures) {
  MetricValues renamed;
  for (const auto& [name, value] : figures)
    renamed.emplace_back(Evaluation::final_name(name), value);
  add_values(iteration, renamed);
  TAPER_INFO("held-out after iteration " << iteration << ":" << held_out_text(figures));
}

}  // namespace taper
