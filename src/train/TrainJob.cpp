// SPDX-License-Identifier: Apache-2.0
#include "train/TrainJob.hpp"

#include <sys/resource.h>

#include <iterator>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "comm/Collectives.hpp"
#include "profile/RunIdentity.hpp"
#include "results/IterationName.hpp"
#include "results/RolloutFile.hpp"
#include "results/RolloutFolder.hpp"
#include "rl/Metrics.hpp"
#include "rollout/GenerationRecord.hpp"
#include "run/LaterResults.hpp"
#include "session/Watchdog.hpp"

namespace taper {
namespace {

// The largest resident size of this process so far, in GiB.
double peak_memory_gib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1024.0 * 1024.0);
}

}  // namespace

SamplingOptions TrainJob::sampling_options(std::int64_t iteration) const {
  return {options_.rollout.temperature,
          options_.rollout.top_k,
          options_.rollout.top_p,
          options_.rollout.min_p,
          options_.seed,
          RandomPurpose::kSampling,
          static_cast<std::uint64_t>(iteration)};
}

ScoreContext TrainJob::score_context(const ModelView& view) {
  return {ranks_.exec,   view,          model_.train_parallel(),
          model_.pass(), pass_options_, {files_.valid_ids(), options_.rollout.temperature}};
}

// record: writes what is still missing of the iteration in the log. A resumed run does not repeat
// the iterations up to a checkpoint, so they are in all results before it is there.
void TrainJob::save_checkpoint(std::int64_t iteration, const std::function<void()>& record) {
  checkpoints_.save(
      ranks_, files_, model_,
      {iteration,
       model_.optimizer().steps(),
       options_.seed,
       config_text_,
       learned_,
       {},
       kl_coef_,
       prompt_batches_},
      [&] {
        record();
        if (log_) log_->flush();
      },
      critic_ ? std::optional(critic_->saved()) : std::nullopt);
  saved_ = iteration;
}

bool TrainJob::must_stop() {
  if (stop_reason_ == StopReason::kNone) stop_reason_ = stop_.agreed(ranks_.world());
  return stop_reason_ != StopReason::kNone;
}

ExitCode TrainJob::run(const ResumePoint& from) {
  ranks_.progress.set_phase("start");
  examine(from, CheckpointCheck::kHead);
  const std::filesystem::path output = options_.output;
  const bool goes_on = from.is_own && !from.is_start();
  same_command_goes_on_ = goes_on && from.checkpoint.empty();
  if (ranks_.rank() == 0) {
    std::filesystem::create_directories(output / "rollouts");
    checkpoints_.remove_unfinished();
    remove_hang_reports(output.string());
    status_.write(RunState::kPending, goes_on ? status_.last_iteration() : 0);
  }
  barrier(ranks_.world());  // the others read checkpoints only now
  create();
  finished_ = saved_ = restore(from);
  history_ = finished_ > 0 ? load_history() : EvaluationHistory(options_.evaluation.best);
  if (const auto best = history_.best()) checkpoints_.keep_always(best->iteration);
  learned_ = generator_.save_planner();
  // Before any other result: where a kill comes first, nothing is left that is taken for a run, and
  // the same command may begin again.
  if (!from.is_own) save_checkpoint(finished_, [] {});
  if (ranks_.rank() == 0) {
    report_later_results(output, finished_, Removal::kNow);
    if (const std::string loss = IterationLog::lost_metrics(output); goes_on && !loss.empty())
      TAPER_WARN(loss);
    checkpoints_.remove_after(finished_);
    remove_rollouts_after(output / "rollouts", finished_);
    log_ = std::make_unique<IterationLog>(output, config_text_, job_facts(ranks_), finished_);
    status_.write(RunState::kRunning, finished_);
  }
  return run_iterations();
}

ExitCode TrainJob::run_iterations() {
  announce();
  if (finished_ >= options_.training.iterations)
    TAPER_INFO("nothing to do: iteration " << finished_ << " of " << options_.training.iterations
                                           << " is finished (raise Training/Iterations to go on)");
  while (finished_ < options_.training.iterations && !history_.is_exhausted()) {
    if (must_stop() || !iterate(finished_ + 1)) {
      if (history_.is_exhausted()) break;
      stop_early();
      return ExitCode::kStoppedEarly;
    }
    ++finished_;
    figures_.reset();
    if (log_) status_.write(RunState::kRunning, finished_);
  }
  if (saved_ < finished_) save_checkpoint(finished_, [] {});  // ended before its last iteration
  if (!evaluate_at_the_end()) {
    stop_early();
    return ExitCode::kStoppedEarly;
  }
  if (log_) {
    log_->flush();
    status_.write(RunState::kCompleted, finished_,
                  history_.is_exhausted() ? "no more progress" : "");
    report_completed();
  }
  return ExitCode::kDone;
}

// Of the run in this directory, by however many jobs.
void TrainJob::report_completed() const {
  const std::int64_t first = log_->first_iteration(), count = finished_ - first + 1;
  TAPER_INFO("completed: " << count_text(count, "iteration")
                           << (first > 1 && count > 0 ? " (" + std::to_string(first) + " to " +
                                                            std::to_string(finished_) + ")"
                                                      : "")
                           << ", results in " << path_text(options_.output));
  const BestOptions& by = options_.evaluation.best;
  const auto best = history_.best();
  if (!best) return;
  const std::string which = best->iteration == 0 ? "the weights that the run began with"
                                                 : iteration_name(best->iteration);
  TAPER_INFO("best by " << by.metric << ": " << which << format_text(" (%.4f)", best->value));
  if (history_.is_exhausted())
    TAPER_INFO("ended early: " << count_text(history_.without_progress(), "evaluation")
                               << " without progress of more than "
                               << format_text("%g", by.min_delta)
                               << " (Evaluation/Patience, Min Delta; the same command with more "
                                  "patience goes on)");
}

void TrainJob::stop_early() {
  ranks_.progress.set_phase("save_checkpoint");
  if (saved_ < finished_) save_checkpoint(finished_, [] {});
  if (!log_) return;
  log_->flush();
  status_.write(RunState::kStopped, finished_, to_string(stop_reason_));
  TAPER_INFO("stopped after iteration "
             << finished_ << " (" << to_string(stop_reason_) << "); the same command "
             << (same_command_goes_on_ ? "goes on" : "with --resume auto goes on"));
}

bool TrainJob::iterate(std::int64_t iteration) {
  ranks_.progress.set_iteration(iteration);
  PhaseTimer timer(ranks_.progress);
  MetricValues metrics{{"training/global_step", static_cast<double>(iteration)}};
  if (options_.evaluation.every > 0 && (iteration - 1) % options_.evaluation.every == 0) {
    timer.start("testing");
    const auto figures = evaluate();
    if (!figures) return false;
    metrics.insert(metrics.end(), figures->begin(), figures->end());
    note_evaluation(*figures);
    if (history_.is_exhausted()) return false;
  }

  auto groups = collect(iteration, timer);
  if (!groups) return false;  // stopped
  const ExperienceReport experience = prepare(groups->samples, timer);
  if (must_stop()) return false;
  update(iteration, *groups, experience, std::move(metrics), timer);
  return true;
}

// What the update needs of the samples besides their scores.
ExperienceReport TrainJob::prepare(std::vector<Sample>& samples, PhaseTimer& timer) {
  const WithoutDropped trained(samples);
  if (reference_) {
    timer.start("ref");
    score_by_reference(samples);
  }
  if (critic_) {
    timer.start("values");
    critic_->set_values(samples);
  }
  timer.start("adv");
  return prepare_samples(samples, options_.experience, kl_coef_);
}

std::optional<GroupSelection> TrainJob::collect(std::int64_t iteration, PhaseTimer& timer) {
  const int wanted = options_.rollout.prompts;
  const int most = options_.dynamic.on ? options_.dynamic.max_rounds : 1;
  std::vector<Sample> all;
  preempted_before_ = generator_.preemptions();
  generations_.clear();
  judge_.begin_figures();
  int rounds = 0;
  while (rounds < most && (rounds == 0 || count_teaching_groups(all) < wanted)) {
    timer.start("gen");
    const auto prompts = prompts_.training(prompt_batches_ + rounds, wanted);
    // Ordinals go on from round to round: no two requests of an iteration share random numbers.
    auto samples = rollout(prompts, std::int64_t{rounds} * wanted, sampling_options(iteration),
                           options_.rollout.samples, timer);
    if (samples.empty()) return std::nullopt;
    generator_.learn(outcomes_of(samples));
    if (options_.rollout.mode != PlannerMode::kStatic) generations_.push_back(generator_.report());
    std::move(samples.begin(), samples.end(), std::back_inserter(all));
    ++rounds;
  }
  GroupSelection groups;
  if (options_.dynamic.on)
    groups = select_groups(std::move(all), wanted);
  else
    groups.samples = std::move(all);
  groups.rounds = rounds;
  return groups;
}

void TrainJob::finish_rollout(std::int64_t iteration, const GroupSelection& groups,
                              const ExperienceReport& experience, MetricValues& metrics) {
  learned_ = generator_.save_planner();
  prompt_batches_ += groups.rounds;
  kl_coef_ =
      adapted_kl_coef(options_.experience.kl, kl_coef_, experience.kl, std::ssize(groups.samples));
  const auto add = [&](const MetricValues& more) {
    metrics.insert(metrics.end(), more.begin(), more.end());
  };
  const bool cut =
      options_.experience.correction.is_on() || sampling_options(iteration).truncates();
  add(experience_metrics(experience, options_.experience, cut));
  if (options_.dynamic.on) add(group_metrics(groups));
  if (!generations_.empty()) add(adaptive_metrics(generations_));
  if (log_) add_generations(log_->run_file(), iteration, generations_);
}

// From here on the weights change: the iteration is finished and counts.
void TrainJob::update(std::int64_t iteration, GroupSelection& groups,
                      const ExperienceReport& experience, MetricValues metrics, PhaseTimer& timer) {
  finish_rollout(iteration, groups, experience, metrics);
  std::vector<Sample>& samples = groups.samples;
  const MetricValues learned = learn(iteration, samples, timer);

  timer.start("output");
  write_rollout_file(iteration, samples);
  const auto record_iteration = [&] { record(iteration, samples, learned, metrics, timer); };
  const bool last = iteration == options_.training.iterations;
  if (last || (options_.checkpoint.every > 0 && iteration % options_.checkpoint.every == 0)) {
    timer.start("save_checkpoint");
    save_checkpoint(iteration, record_iteration);
  } else {
    record_iteration();
  }
}

MetricValues TrainJob::learn(std::int64_t iteration, std::vector<Sample>& samples,
                             PhaseTimer& timer) {
  const WithoutDropped trained(samples);
  publish_seconds_ = 0.0;
  MetricValues figures;
  const auto add = [&](const MetricValues& more) {
    figures.insert(figures.end(), more.begin(), more.end());
  };
  if (critic_) {
    timer.start("update_critic");
    add(value_metrics(samples));
    add(critic_metrics(critic_->update(samples)));
    if (critic_->learns_alone(iteration)) return figures;
  }
  timer.start("update_actor");
  add(update_metrics(trainer_->update(samples), options_.loss_in_use().kl_coef));
  return figures;
}

// Stops the timer, and writes metrics and times of the iteration into all results.
void TrainJob::record(std::int64_t iteration, const std::vector<Sample>& samples,
                      const MetricValues& learned, MetricValues& metrics, PhaseTimer& timer) {
  timer.stop();
  std::int64_t tokens = 0;
  for (const Sample& s : samples) tokens += s.length();
  for (auto& m : rollout_metrics(samples)) metrics.push_back(m);
  for (auto& m : judge_.metrics("reward")) metrics.push_back(std::move(m));
  metrics.insert(metrics.end(), learned.begin(), learned.end());
  metrics.emplace_back("perf/total_num_tokens", static_cast<double>(tokens));
  metrics.emplace_back("timing_s/publish", publish_seconds_);  // a part of update_actor
  metrics.emplace_back("timing_s/step", timer.total());
  metrics.emplace_back("perf/time_per_step", timer.total());
  metrics.emplace_back("perf/throughput",
                       static_cast<double>(tokens) / timer.total() / ranks_.size());
  std::vector<double> memory{peak_memory_gib()};
  all_reduce_max(ranks_.world(), memory);
  metrics.emplace_back("perf/max_memory_allocated_gb", memory.front());
  metrics.emplace_back("rollout/preemptions",
                       static_cast<double>(generator_.preemptions() - preempted_before_));
  const auto timing = reduce_timing(ranks_.world(), timer);
  std::vector<int> lengths;
  for (const Sample& s : samples) lengths.push_back(static_cast<int>(s.response.size()));
  if (log_) log_->add(iteration, metrics, timing, lengths);
}

// Generates, scores where the responses were made, and brings all samples to all ranks.
std::vector<Sample> TrainJob::rollout(const std::vector<Prompt>& prompts,
                                      std::int64_t first_ordinal, const SamplingOptions& sampling,
                                      int samples, PhaseTimer& timer) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < prompts.size(); ++i)
    requests.push_back({first_ordinal + static_cast<std::int64_t>(i), 0, samples, prompts[i].tokens,
                        options_.rollout.max_new_tokens});
  lengths_.give(requests, static_cast<std::int64_t>(sampling.iteration));
  const StopOptions stops = stop_options(files_, options_.rollout.stop_strings);
  judge_.begin(prompts, first_ordinal);
  auto completions = generator_.run(
      requests, sampling, stops,
      [this](const Group& group) { return stop_.agreed(group) != StopReason::kNone; },
      [this](const Completion& c) { judge_.submit(c); });
  if (must_stop()) return {};
  timer.start("reward");
  std::vector<Sample> mine;
  mine.reserve(completions.size());
  for (Completion& c : completions) mine.push_back(as_sample(std::move(c)));
  return judge_.finish(std::move(mine), [this] { return must_stop(); });
}

void TrainJob::score_by_reference(std::vector<Sample>& samples) {
  const auto mine = trainer_->trained_here(samples);
  score_by_reference(samples, mine);
  if (options_.experience.kl.in_reward())
    gather_figures(model_.dp_group(), samples, mine, &Sample::ref_log_probs);
}

void TrainJob::score_by_reference(std::vector<Sample>& samples, const std::vector<int>& mine) {
  // Before the first step policy and reference are one model, and scoring has the bits of the
  // rollout.
  if (model_.optimizer().steps() == 0) {
    for (const int i : mine) samples[i].ref_log_probs = samples[i].log_probs;
    return;
  }
  std::vector<std::span<const std::int32_t>> prompts, responses;
  for (const int i : mine) {
    prompts.emplace_back(samples[i].prompt);
    responses.emplace_back(samples[i].response);
  }
  auto scores = score_responses(score_context(reference_->view()), prompts, responses);
  for (std::size_t k = 0; k < mine.size(); ++k)
    samples[mine[k]].ref_log_probs = std::move(scores[k]);
}

void TrainJob::write_rollout_file(std::int64_t iteration, const std::vector<Sample>& samples) {
  const bool is_cut = sampling_options(iteration).truncates();
  std::vector<RolloutRecord> mine;
  for (std::size_t i = ranks_.rank(); i < samples.size(); i += ranks_.size()) {
    const Sample& s = samples[i];
    RolloutRecord r;
    r.group = s.ordinal;
    r.sample = s.sample;
    r.prompt_length = static_cast<std::int32_t>(s.prompt.size());
    r.tokens = s.prompt;
    r.log_probs = s.log_probs;
    r.tokens.insert(r.tokens.end(), s.response.begin(), s.response.end());
    if (is_cut) r.kept_mass = s.kept_mass;
    r.values = s.values;
    r.rewards = s.rewards;
    r.advantage = s.mean_advantage();
    r.finish = s.finish;
    r.layout = s.spans;
    mine.push_back(std::move(r));
  }
  RolloutFileOptions file;
  file.iteration = iteration;
  file.reward_names = judge_.names();
  const LibraryWait wait(ranks_.progress, "write_rollouts", ranks_.size());
  write_rollouts(rollout_path(std::filesystem::path(options_.output) / "rollouts", iteration),
                 ranks_.world().comm(), mine, file);
}

}  // namespace taper
