// SPDX-License-Identifier: Apache-2.0
#include "driver/SftJob.hpp"

#include <algorithm>
#include <cmath>

#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "driver/SaveModel.hpp"
#include "rl/MicroBatch.hpp"
#include "rl/ScoreModel.hpp"

namespace taper {
namespace {

double value_of(const MetricValues& metrics, const std::string& name) {
  for (const auto& [key, value] : metrics)
    if (key == name) return value;
  return NAN;
}

std::vector<int> input_lengths(const std::vector<TokenExample>& examples) {
  std::vector<int> lengths;
  lengths.reserve(examples.size());
  for (const TokenExample& e : examples) lengths.push_back(e.length() - 1);
  return lengths;
}

std::int64_t targets_of(const std::vector<TokenExample>& examples) {
  std::int64_t count = 0;
  for (const TokenExample& e : examples) count += e.targets();
  return count;
}

// The examples that this rank computes, packed into micro-batches; `each` gets their indices too.
template <class Each>
void for_each_batch(const std::vector<TokenExample>& examples, const TrainPassOptions& pass,
                    const Group& dp, const Each& each) {
  const std::vector<int> lengths = input_lengths(examples);
  const auto mine = assign_samples(lengths, dp.size(), dp.rank());
  std::vector<int> my_lengths;
  my_lengths.reserve(mine.size());
  for (const int i : mine) my_lengths.push_back(lengths[i]);
  for (const auto& part : cut_micro_batches(my_lengths, pass.max_rows, pass.max_sequences)) {
    PackedSamples packed;
    std::vector<int> members;
    for (const int b : part) {
      members.push_back(mine[b]);
      packed.add(examples[mine[b]].tokens, examples[mine[b]].answers);
    }
    each(packed, members);
  }
}

}  // namespace

bool SftJob::must_stop() {
  if (stop_ != nullptr && stop_reason_ == StopReason::kNone)
    stop_reason_ = stop_->agreed(ranks_.world());
  return stop_reason_ != StopReason::kNone;
}

// Sets the gradient of the batch and returns its loss.
double SftJob::accumulate(const std::vector<TokenExample>& batch) {
  const auto targets = static_cast<double>(targets_of(batch));
  const HeadOptions head{files_.valid_ids(), 1.0f};
  const TokenSlope slope{-1.0f / static_cast<float>(targets), 0.0f};
  const FloatVector gradient = model_.gradients().all();
  std::fill_n(gradient.data(), gradient.extent(0), 0.0f);
  double loss = 0;
  const auto add_loss = [&](std::size_t, float log_prob, float) {
    loss -= log_prob;
    return slope;
  };
  const auto& parallel = model_.train_parallel();
  for_each_batch(batch, pass_options_, model_.dp_group(),
                 [&](const PackedSamples& packed, const std::vector<int>&) {
                   model_.pass().forward(ranks_.exec, model_.train_view(), parallel,
                                         packed.sequences);
                   model_.pass().backward(ranks_.exec, model_.train_view(), parallel, packed.rows,
                                          packed.targets, head, add_loss, model_.gradients());
                 });
  std::vector<double> total{loss};
  all_reduce_ordered_sum(model_.dp_group(), total);
  return total.front() / targets;
}

MetricValues SftJob::step(const std::vector<TokenExample>& batch) {
  const double loss = accumulate(batch);
  ScheduleOptions schedule = options_.schedule;
  if (schedule.total_steps == 0) schedule.total_steps = std::max(steps_, schedule.warmup_steps + 1);
  const double rate = learning_rate(schedule, model_.optimizer().steps());
  const OptimizerReport report = model_.optimizer().step(ranks_.exec, model_.gradients(), rate);
  model_.publish();
  MetricValues metrics{{"train/loss", loss},
                       {"train/grad_norm", report.grad_norm},
                       {"train/lr", rate},
                       {"train/examples", static_cast<double>(batch.size())},
                       {"train/target_tokens", static_cast<double>(targets_of(batch))},
                       {"train/skipped_steps", report.skipped ? 1.0 : 0.0}};
  if (source_.examples() > 0) metrics.emplace_back("train/epoch", source_.epochs(next_));
  return metrics;
}

double SftJob::validation_loss() {
  ranks_.progress.set_phase("validation");
  const auto& examples = source_.validation();
  // A sum per example, and these in their order: who computed which does not matter.
  std::vector<double> sums(examples.size(), 0.0);
  for_each_batch(examples, pass_options_, model_.dp_group(),
                 [&](const PackedSamples& packed, const std::vector<int>& members) {
                   std::vector<float> log_probs(packed.rows.size());
                   model_.pass().forward(ranks_.exec, model_.train_view(), model_.train_parallel(),
                                         packed.sequences);
                   model_.pass().log_probs(ranks_.exec, model_.train_view(),
                                           model_.train_parallel(), packed.rows, packed.targets,
                                           {files_.valid_ids(), 1.0f}, log_probs, {});
                   auto next = log_probs.begin();
                   for (const int i : members)
                     for (int k = 0; k < examples[i].targets(); ++k) sums[i] -= *next++;
                 });
  all_reduce_ordered_sum(model_.dp_group(), sums);
  double total = 0;
  for (const double sum : sums) total += sum;
  ranks_.progress.set_phase("sft");
  return total / static_cast<double>(targets_of(examples));
}

bool SftJob::validates_after(std::int64_t step) const {
  return !source_.validation().empty() &&
         (step == 0 || step == steps_ ||
          (options_.validate_every > 0 && step % options_.validate_every == 0));
}

void SftJob::print(const MetricValues& metrics, std::int64_t tokens, double seconds) const {
  const double validation = value_of(metrics, "val/loss");
  if (done_ == 0) {
    TAPER_INFO(format_text("before the first step: held-out loss %.4f", validation));
    return;
  }
  const double epoch = value_of(metrics, "train/epoch");
  TAPER_INFO(format_text("step %6lld / %lld", static_cast<long long>(done_),
                         static_cast<long long>(steps_))
             << (std::isnan(epoch) ? "" : format_text("   epoch %.2f", epoch))
             << format_text("   loss %.4f   grad norm %.3f   %.0f tokens/s of all ranks",
                            value_of(metrics, "train/loss"), value_of(metrics, "train/grad_norm"),
                            static_cast<double>(tokens) / seconds)
             << (std::isnan(validation) ? "" : format_text("   held-out loss %.4f", validation)));
}

void SftJob::record(const MetricValues& metrics) {
  if (log_) log_->add_values(done_, metrics);
}

// What the step measured is in the results before its checkpoint is there.
void SftJob::save_checkpoint(const MetricValues& metrics) {
  ranks_.progress.set_phase("save_checkpoint");
  StateInfo info{done_, model_.optimizer().steps(), options_.seed, config_};
  info.data = {static_cast<std::int64_t>(next_), static_cast<std::int64_t>(source_.fingerprint())};
  checkpoints_.save(ranks_, files_, model_, info, [&] {
    if (!metrics.empty()) record(metrics);
    if (log_) log_->flush();
  });
  saved_ = done_;
  ranks_.progress.set_phase("sft");
}

void SftJob::stop_early() {
  if (saved_ < done_ && done_ > 0) save_checkpoint({});
  if (!log_) return;
  log_->flush();
  status_->write(RunState::kStopped, done_, to_string(stop_reason_));
  TAPER_INFO("stopped after step " << done_ << " (" << to_string(stop_reason_)
                                   << "); the same command goes on");
}

ExitCode SftJob::train() {
  constexpr double kStatusSeconds = 2.0;
  ranks_.progress.set_phase("sft");
  if (done_ == 0 && validates_after(0)) {
    const MetricValues metrics{{"val/loss", validation_loss()}};
    record(metrics);
    print(metrics, 0, 1.0);
  }
  Timer timer, since_status;
  std::int64_t tokens = 0;
  const std::int64_t first = done_ + 1;
  while (done_ < steps_) {
    if (must_stop()) return ExitCode::kStoppedEarly;
    ranks_.progress.set_step(done_ + 1);
    const auto batch = source_.next_batch(next_);
    for (const TokenExample& e : batch) tokens += e.length();
    MetricValues metrics = step(batch);
    ++done_;
    const double seconds = timer.seconds();
    if (validates_after(done_)) metrics.emplace_back("val/loss", validation_loss());
    if (options_.checkpoint.every > 0 && done_ % options_.checkpoint.every == 0)
      save_checkpoint(metrics);
    else
      record(metrics);
    if (done_ % 20 == 0 || done_ == first || done_ == steps_ || validates_after(done_))
      print(metrics, tokens, seconds);
    if (log_ && since_status.seconds() > kStatusSeconds) {
      status_->write(RunState::kRunning, done_);
      since_status.restart();
    }
  }
  return ExitCode::kDone;
}

void SftJob::save_result() {
  save_model(ranks_, files_, model_, options_.output);
  if (!log_) return;
  log_->flush();
  status_->write(RunState::kCompleted, done_);
  TAPER_INFO("completed: " << count_text(done_, "step") << ", results in "
                           << path_text(options_.output) << " (metrics in "
                           << path_text(options_.run_path()) << ")");
}

ExitCode SftJob::run(const SftRun& how) {
  config_ = how.config;
  stop_ = how.stop;
  start(how.from);
  const ExitCode code = train();
  if (code == ExitCode::kStoppedEarly)
    stop_early();
  else
    save_result();
  return code;
}

}  // namespace taper
