// SPDX-License-Identifier: Apache-2.0
#include "driver/TrainJob.hpp"

#include <sys/resource.h>

#include <algorithm>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "comm/Collectives.hpp"
#include "driver/ConfigChanges.hpp"
#include "driver/Reward.hpp"
#include "driver/RolloutFolder.hpp"
#include "io/RolloutFile.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

// The files of the model. Throws Error where prompt and response exceed its context, or where it
// has no tokenizer.
ModelFiles open_model(const RunOptions& o) {
  ModelFiles files(o.model.directory, "Model/Directory");
  files.require_tokenizer("rewards are judged by the text of responses");
  TAPER_VALIDATE(o.max_positions() <= files.config.max_positions,
                 "Rollout/Max Prompt Tokens "
                     << o.rollout.max_prompt_tokens << " and Rollout/Max New Tokens "
                     << o.rollout.max_new_tokens
                     << " are together longer than the model's context ("
                     << files.config.max_positions << " positions); lower one of them");
  return files;
}

fs::path checkpoints_path_of(const RunOptions& o) {
  return fs::path(o.output) / "checkpoints";
}

// Of a run whose sequences fit the model's context.
TrainPassOptions pass_options(const RunOptions& o) {
  TrainPassOptions pass;
  pass.max_rows = std::max(o.training.max_tokens, static_cast<int>(o.max_positions()));
  pass.checkpointing = o.training.checkpointing ? Checkpointing::kYes : Checkpointing::kNo;
  return pass;
}

// The largest resident size of this process so far, in GiB.
double peak_memory_gib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1024.0 * 1024.0);
}

TrainingModelOptions model_options(const RunOptions& o, int rollout_tp) {
  return {o.model.type, o.training.tp, rollout_tp, pass_options(o), o.adamw};
}

}  // namespace

TrainJob::TrainJob(const RunOptions& options, const std::string& config_text, const Ranks& ranks,
                   const StopRequest& stop)
    : options_(options),
      config_text_(config_text),
      ranks_(ranks),
      stop_(stop),
      status_(options.output, options.training.iterations),
      files_(open_model(options)),
      prompts_(options.data, files_, options.rollout.max_prompt_tokens, options.seed),
      generator_(options.rollout, options.model.type, files_, ranks),
      model_(files_, ranks, model_options(options, generator_.smallest_degree())),
      pass_options_(pass_options(options)),
      checkpoints_(checkpoints_path_of(options), options.checkpoint.keep) {
  model_.plan(plan_);
  if (options.loss.kl_coef > 0.0) {
    reference_ = std::make_unique<InferenceModel>("reference", files_, ranks, options.training.tp);
    reference_->plan(plan_, options.model.type);
  }
  generator_.plan(plan_);
}

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

std::string TrainJob::memory_advice() const {
  const bool rollout = plan_.bytes(MemoryPhase::kRollout) > plan_.bytes(MemoryPhase::kTraining);
  return rollout ? "lower Rollout/KV Memory MB, Rollout/Max Running or Rollout/Step Rows"
                 : "lower Training/Max Tokens, or set Training/Activation Checkpointing";
}

RunStart TrainJob::examine(const ResumePoint& from, CheckpointCheck check) const {
  require_memory(ranks_, plan_, memory_advice());
  RunStart start =
      find_run_start(from.checkpoint, from.store, options_.seed, files_, ranks_, check);
  // A checkpoint has all weights but those of the reference.
  if (start.is_afresh() || reference_) HuggingFaceReader(files_.directory, files_.table);
  if (check == CheckpointCheck::kContents && !start.is_afresh() && ranks_.rank() == 0)
    report_differences(start.state);
  return start;
}

void TrainJob::report_differences(const StateInfo& state) const {
  for (const auto& change : config_changes(state.config, config_text_))
    TAPER_INFO("differs from the checkpoint's run file: " << change);
  const std::string layout =
      to_string(RankGrid{model_.train_parallel().group().size(), model_.dp_group().size()});
  if (!state.layout.empty() && state.layout != layout)
    TAPER_INFO("the iterations so far were trained in layout "
               << state.layout << ", from here on it is " << layout
               << ": gradients are summed in another order, so the results are close to those of "
                  "an unchanged run (equal up to rounding, not bit for bit)");
}

void TrainJob::create() {
  arena_ = std::make_unique<Arena>(plan_);
  const ConstFloatMatrix rope = files_.rope_table(static_cast<int>(options_.max_positions()));
  model_.create(*arena_, rope);
  if (reference_) reference_->load(ranks_.exec, options_.model.type, *arena_);
  generator_.create(model_.packed(), *arena_, rope);
  const PolicyTrainerOptions trainer{options_.loss, options_.schedule,
                                     options_.training.mini_batches, options_.training.epochs};
  trainer_ = std::make_unique<PolicyTrainer>(trainer, score_context(model_.train_view()),
                                             model_.dp_group(), model_.gradients(),
                                             model_.optimizer(), [this] {
                                               const Timer timer;
                                               ranks_.progress.set_phase("publish");
                                               model_.publish();
                                               ranks_.progress.set_phase("update_actor");
                                               publish_seconds_ += timer.seconds();
                                             });
}

// Weights from a checkpoint or from the model directory; the iterations already finished.
std::int64_t TrainJob::restore(const ResumePoint& from) {
  std::optional<StateInfo> state;
  if (!from.checkpoint.empty())
    state = CheckpointStore::load(from.checkpoint, ranks_, files_, model_);
  else if (!from.store.empty())
    state =
        CheckpointStore(from.store, options_.checkpoint.keep).load_newest(ranks_, files_, model_);
  if (!state) {
    model_.load_masters();
    return 0;
  }
  // Of the one that was loaded, which need not be the one that examine() saw.
  require_same_seed(from.checkpoint.empty() ? from.store : from.checkpoint, state->seed,
                    options_.seed);
  if (!state->policy.empty()) generator_.load_policy(state->policy);
  report_differences(*state);
  TAPER_INFO((from.is_own ? "resuming after iteration " : "a new run, after iteration ")
             << state->iteration << (from.is_own ? "" : " of another one"));
  return state->iteration;
}

void TrainJob::save_checkpoint(std::int64_t iteration) {
  if (log_) log_->flush();  // the iterations before, which a resumed run does not repeat
  checkpoints_.save(ranks_, files_, model_,
                    {iteration, model_.optimizer().steps(), options_.seed, config_text_, learned_});
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
    status_.write(RunState::kPending, goes_on ? status_.last_iteration() : 0);
  }
  barrier(ranks_.world());  // the others read checkpoints only now
  create();
  finished_ = saved_ = restore(from);
  learned_ = generator_.save_policy();
  if (ranks_.rank() == 0) {
    checkpoints_.remove_after(finished_);
    remove_rollouts_after(output / "rollouts", finished_);
    log_ = std::make_unique<IterationLog>(output, config_text_, ranks_.size(), finished_);
    status_.write(RunState::kRunning, finished_);
  }
  if (!from.is_own) save_checkpoint(finished_);
  return run_iterations();
}

ExitCode TrainJob::run_iterations() {
  if (finished_ >= options_.training.iterations)
    TAPER_INFO("nothing to do: iteration " << finished_ << " of " << options_.training.iterations
                                           << " is finished (raise Training/Iterations to go on)");
  while (finished_ < options_.training.iterations) {
    if (must_stop() || !iterate(finished_ + 1)) {
      stop_early();
      return ExitCode::kStoppedEarly;
    }
    ++finished_;
    if (log_) status_.write(RunState::kRunning, finished_);
  }
  if (!evaluate_at_the_end()) {
    stop_early();
    return ExitCode::kStoppedEarly;
  }
  if (log_) {
    log_->flush();
    status_.write(RunState::kCompleted, finished_);
    report_completed();
  }
  return ExitCode::kDone;
}

// Of the run in this directory, by however many jobs.
void TrainJob::report_completed() const {
  const std::int64_t first = log_->first_iteration(), count = finished_ - first + 1;
  TAPER_INFO("completed: " << count << " iterations"
                           << (first > 1 && count > 0 ? " (" + std::to_string(first) + " to " +
                                                            std::to_string(finished_) + ")"
                                                      : "")
                           << ", results in " << options_.output);
}

void TrainJob::stop_early() {
  ranks_.progress.set_phase("save_checkpoint");
  if (saved_ < finished_) save_checkpoint(finished_);
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
    const auto score = evaluate();
    if (!score) return false;
    metrics.emplace_back("val/score/mean", *score);
  }

  timer.start("gen");
  preempted_before_ = generator_.preemptions();
  const auto prompts = prompts_.training(iteration - 1, options_.rollout.prompts);
  std::vector<Sample> samples =
      rollout(prompts, sampling_options(iteration), options_.rollout.samples, timer);
  if (samples.empty()) return false;  // stopped

  if (reference_) {
    timer.start("ref");
    score_by_reference(samples);
  }
  timer.start("adv");
  set_group_advantages(samples, options_.advantage);
  if (must_stop()) return false;
  update(iteration, samples, std::move(metrics), timer);
  return true;
}

// From here on the weights change: the iteration is finished and counts.
void TrainJob::update(std::int64_t iteration, std::vector<Sample>& samples, MetricValues metrics,
                      PhaseTimer& timer) {
  generator_.learn(outcomes_of(samples));
  learned_ = generator_.save_policy();
  if (options_.rollout.mode != PolicyMode::kStatic) {
    for (auto& m : adaptive_metrics(generator_.report())) metrics.push_back(m);
    if (log_) log_->add_generation(iteration, generator_.report());
  }
  timer.start("update_actor");
  publish_seconds_ = 0.0;
  const UpdateReport update = trainer_->update(samples);

  timer.start("output");
  write_rollout_file(iteration, samples);
  const bool last = iteration == options_.training.iterations;
  if (last || (options_.checkpoint.every > 0 && iteration % options_.checkpoint.every == 0)) {
    timer.start("save_checkpoint");
    save_checkpoint(iteration);
  }
  timer.stop();

  std::int64_t tokens = 0;
  for (const Sample& s : samples) tokens += s.length();
  for (auto& m : rollout_metrics(samples)) metrics.push_back(m);
  for (auto& m : update_metrics(update, reference_ ? WithKl::kYes : WithKl::kNo))
    metrics.push_back(m);
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
  if (!log_) return;
  log_->add(iteration, metrics, timing, samples);
  if (saved_ == iteration) log_->flush();  // is behind a checkpoint, with the time of saving it
}

// Generates, scores where the responses were made, and brings all samples to all ranks.
std::vector<Sample> TrainJob::rollout(const std::vector<Prompt>& prompts,
                                      const SamplingOptions& sampling, int samples,
                                      PhaseTimer& timer) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < prompts.size(); ++i)
    requests.push_back({static_cast<std::int64_t>(i), 0, samples, prompts[i].tokens,
                        options_.rollout.max_new_tokens});
  const StopOptions stops = stop_options(files_, options_.rollout.stop_strings);
  auto completions = generator_.run(requests, sampling, stops, [this](const Group& group) {
    return stop_.agreed(group) != StopReason::kNone;
  });
  if (must_stop()) return {};
  timer.start("reward");
  std::vector<Sample> mine;
  for (Completion& c : completions) {
    Sample s = as_sample(std::move(c));
    const std::string text = files_.tokenizer().decode(s.response, SkipSpecial::kYes);
    s.rewards = {
        static_cast<float>(score_response(options_.data.rule, prompts[s.ordinal].truth, text))};
    s.score = s.rewards.front();
    mine.push_back(std::move(s));
  }
  return gather_samples(ranks_.world(), mine);
}

void TrainJob::score_by_reference(std::vector<Sample>& samples) {
  const auto mine = trainer_->trained_here(samples);
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

std::optional<double> TrainJob::evaluate() {
  const SamplingOptions sampling{options_.evaluation.temperature, 0, 1.0f, 0.0f, options_.seed,
                                 RandomPurpose::kEvaluation,      0};
  PhaseTimer unused(ranks_.progress);
  const auto samples =
      rollout(prompts_.evaluation(options_.evaluation.prompts), sampling, 1, unused);
  generator_.load_policy(learned_);          // evaluations leave no trace in it
  if (samples.empty()) return std::nullopt;  // stopped
  double sum = 0;
  for (const Sample& s : samples) sum += s.score;
  return sum / static_cast<double>(samples.size());
}

bool TrainJob::evaluate_at_the_end() {
  std::vector<std::int64_t> done{options_.evaluation.every == 0 ||
                                 (log_ && log_->has_final_evaluation())};
  all_reduce_max(ranks_.world(), done);  // rank 0 has the log
  if (done.front() != 0) return true;
  ranks_.progress.set_iteration(finished_ + 1);  // evaluations come before an iteration
  ranks_.progress.set_phase("testing");
  const auto score = evaluate();
  if (score && log_) log_->add_final_evaluation(finished_, *score);
  return score.has_value();
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
    r.rewards = s.rewards;
    r.advantage = s.advantage;
    r.finish = s.finish;
    r.layout = s.spans;
    mine.push_back(std::move(r));
  }
  RolloutFileOptions file;
  file.iteration = iteration;
  file.reward_names = {"score"};
  const LibraryWait wait(ranks_.progress, "write_rollouts", ranks_.size());
  write_rollouts(rollout_path(std::filesystem::path(options_.output) / "rollouts", iteration),
                 ranks_.world().comm(), mine, file);
}

}  // namespace taper
