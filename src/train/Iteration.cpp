// SPDX-License-Identifier: Apache-2.0
//
// The iteration of a training job, and its stages.
#include "base/Log.hpp"
#include "comm/Collectives.hpp"
#include "device/HostMemory.hpp"
#include "results/RolloutFile.hpp"
#include "rl/Metrics.hpp"
#include "rollout/GeneratedSample.hpp"
#include "rollout/GenerationRecord.hpp"
#include "train/TrainJob.hpp"

namespace taper {

IterationEnd TrainJob::iterate(std::int64_t iteration) {
  ranks_.progress.set_iteration(iteration);
  PhaseTimer timer(ranks_.progress);
  MetricValues metrics{{"training/global_step", static_cast<double>(iteration)}};
  if (evaluation_.is_due(iteration)) {
    timer.start("testing");
    const auto figures = evaluate();
    if (!figures) return IterationEnd::kStopped;
    add(metrics, *figures);
    note(*figures);
    if (history().is_exhausted()) return IterationEnd::kNoProgress;
  }

  // The comments name the phases whose times are recorded.
  auto batch = rollouts_.collect(iteration, stop(), timer);  // gen, reward
  if (!batch) return put_off(iteration);
  add_reference(*batch, timer);                                       // ref
  add_values(*batch, timer);                                          // values
  const ExperienceReport experience = add_advantages(*batch, timer);  // adv
  if (stop().reached()) return put_off(iteration);

  // From here on the weights change: the iteration will be finished, whatever stop is asked for.
  figures_.reset();
  advance(*batch, experience);
  add(metrics, experience_figures(iteration, *batch, experience));
  MetricValues update = learn(iteration, *batch, timer);  // update_critic, update_actor
  add(update, train_draft(*batch, timer));                // update_draft
  timer.start("output");
  write_rollout_file(iteration, *batch);
  const bool is_due = is_checkpoint_due(iteration);
  if (is_due) timer.start("save_checkpoint");
  conclude(iteration, is_due, [&] { record(iteration, *batch, update, metrics, timer); });
  rollouts_.forget(iteration);
  return IterationEnd::kFinished;
}

IterationEnd TrainJob::put_off(std::int64_t iteration) {
  rollouts_.put_off(iteration);
  return IterationEnd::kStopped;
}

std::optional<MetricValues> TrainJob::evaluate() {
  if (figures_) return figures_;
  figures_ = evaluation_.run([this](const Group& group) { return stop().is_wanted_in(group); });
  generator_.load_planner(planner_state_);  // evaluations leave no trace in it
  if (!figures_) stop().reached();          // agrees on the reason
  return figures_;
}

// The best so far are in a checkpoint before best.json says so; if a kill comes between, the job
// that goes on evaluates them again.
void TrainJob::note(const MetricValues& figures) {
  if (const std::string lack = Evaluation::lack_of_best(options_.evaluation, figures);
      ranks_.rank() == 0 && !lack.empty())
    TAPER_WARN(lack);
  if (note_evaluation(done(), figures)) save_unsaved();
  keep_best();
}

PassContext TrainJob::pass_context(const ModelView& view) {
  return {
      ranks_.exec,   view,          model_.train_parallel(),
      model_.pass(), pass_options_, {files_.valid_ids(), options_.rollout.sampling.temperature}};
}

void TrainJob::add_reference(Batch& batch, PhaseTimer& timer) {
  if (!reference_) return;
  timer.start("ref");
  trainer_->bring(batch.samples);
  std::vector<Sample>& samples = batch.samples.here();
  // Before the first step policy and reference are one model, whose log-probs have the bits of the
  // rollout.
  if (model_.optimizer().steps() == 0) {
    for (Sample& s : samples) s.ref_log_probs = s.log_probs;
    return;
  }
  std::vector<std::span<const std::int32_t>> prompts, responses;
  for (const Sample& s : samples) {
    prompts.emplace_back(s.prompt);
    responses.emplace_back(s.response);
  }
  auto log_probs = response_log_probs(pass_context(reference_->view()), prompts, responses);
  for (std::size_t k = 0; k < samples.size(); ++k)
    samples[k].ref_log_probs = std::move(log_probs[k]);
}

void TrainJob::add_values(Batch& batch, PhaseTimer& timer) {
  if (!critic_) return;
  timer.start("values");
  critic_->set_values(batch.samples);
}

ExperienceReport TrainJob::add_advantages(Batch& batch, PhaseTimer& timer) {
  timer.start("adv");
  return prepare_samples(batch.samples, options_.experience, kl_coef_);
}

void TrainJob::advance(const Batch& batch, const ExperienceReport& experience) {
  planner_state_ = generator_.save_planner();
  rollouts_.advance();
  kl_coef_ = adapted_kl_coef(options_.experience.kl, kl_coef_, experience.kl, batch.size());
}

MetricValues TrainJob::experience_figures(std::int64_t iteration, const Batch& batch,
                                          const ExperienceReport& experience) const {
  MetricValues figures = experience_metrics(experience, options_.experience);
  const RolloutCorrectionOptions& correction = options_.experience.correction;
  if (correction.is_on() || rollouts_.sampling(iteration).truncates())
    add(figures, mismatch_metrics(experience.mismatch, correction));
  if (options_.dynamic.on) add(figures, group_metrics(batch.groups));
  if (!options_.rollout.rounds.is_plain()) add(figures, round_metrics(rollouts_.reports()));
  add(figures, generation_metrics(options_.rollout, rollouts_.generations()));
  return figures;
}

MetricValues TrainJob::learn(std::int64_t iteration, Batch& batch, PhaseTimer& timer) {
  publish_seconds_ = 0.0;
  if (exits_) exits_->trainer().begin(batch.samples.response_tokens() / ranks_.size());
  MetricValues figures;
  if (critic_) {
    timer.start("update_critic");
    add(figures, value_metrics(batch.samples));
    add(figures, critic_metrics(critic_->update(batch.samples)));
    if (critic_->learns_alone(iteration)) return figures;
  }
  timer.start("update_actor");
  add(figures, update_metrics(trainer_->update(batch.samples), options_.loss_in_use().kl_coef));
  return figures;
}

MetricValues TrainJob::train_draft(Batch& batch, PhaseTimer& timer) {
  if (!draft_ && !exits_) return {};
  timer.start("update_draft");
  return draft_metrics(draft_ ? draft_->update(batch.samples) : exits_->trainer().learn());
}

// Stops the timer, and writes metrics and times of the iteration into all results.
void TrainJob::record(std::int64_t iteration, const Batch& batch, const MetricValues& update,
                      MetricValues& metrics, PhaseTimer& timer) {
  timer.stop();
  const std::vector<SampleSummary> samples = batch.summaries();
  std::int64_t tokens = 0;
  for (const SampleSummary& s : samples) tokens += s.length();
  for (const auto& more : {rollout_metrics(samples), judge_.metrics("reward"), update})
    add(metrics, more);
  metrics.emplace_back("perf/total_num_tokens", static_cast<double>(tokens));
  metrics.emplace_back("timing_s/publish", publish_seconds_);  // a part of update_actor
  metrics.emplace_back("timing_s/step", timer.total());
  metrics.emplace_back("perf/time_per_step", timer.total());
  metrics.emplace_back("perf/throughput",
                       static_cast<double>(tokens) / timer.total() / ranks_.size());
  std::vector<std::int64_t> memory{process_memory_peak()};
  all_reduce_max(ranks_.world(), memory);
  metrics.emplace_back("perf/max_memory_allocated_gb",  // GiB; the name is as in verl
                       static_cast<double>(memory.front()) / (1 << 30));
  metrics.emplace_back("rollout/preemptions", static_cast<double>(rollouts_.preemptions()));
  const auto timing = reduce_timing(ranks_.world(), timer);
  std::vector<int> lengths;
  for (const SampleSummary& s : samples) lengths.push_back(s.response_tokens);
  if (!log()) return;
  add_rounds(log()->run_file(), iteration, rollouts_.reports());
  add_generations(log()->run_file(), iteration, options_.rollout, rollouts_.generations());
  log()->add(iteration, metrics, timing, lengths);
}

void TrainJob::write_rollout_file(std::int64_t iteration, const Batch& batch) {
  const bool is_cut = rollouts_.sampling(iteration).truncates();
  std::vector<RolloutRecord> mine;
  for (const SampleSet* set : {&batch.samples, &batch.unscored})
    for (std::size_t k = 0; k < set->here().size(); ++k)
      if (set->speaks_for(k)) mine.push_back(record_of(set->here()[k], is_cut));
  RolloutFileOptions file;
  file.iteration = iteration;
  file.reward_names = judge_.names();
  file.stream = rollouts_.stream();
  const LibraryWait wait(ranks_.progress, "write_rollouts", ranks_.size());
  write_rollouts(setup().directory.rollout(iteration), ranks_.world().comm(), mine, file);
}

}  // namespace taper
