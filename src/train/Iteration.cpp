// SPDX-License-Identifier: Apache-2.0
//
// The iteration of a training job, and its stages.
#include <sys/resource.h>

#include "comm/Collectives.hpp"
#include "results/RolloutFile.hpp"
#include "results/RolloutFolder.hpp"
#include "rl/Metrics.hpp"
#include "rollout/GenerationRecord.hpp"
#include "train/TrainJob.hpp"

namespace taper {

IterationEnd TrainJob::iterate(std::int64_t iteration) {
  ranks_.progress.set_iteration(iteration);
  PhaseTimer timer(ranks_.progress);
  MetricValues metrics{{"training/global_step", static_cast<double>(iteration)}};
  if (options_.evaluation.every > 0 && (iteration - 1) % options_.evaluation.every == 0) {
    timer.start("testing");
    const auto figures = evaluate();
    if (!figures) return IterationEnd::kStopped;
    add(metrics, *figures);
    note_evaluation(*figures);
    if (history_.is_exhausted()) return IterationEnd::kNoProgress;
  }

  auto batch = rollouts_.collect(iteration, prompt_batches_, stop_, timer);  // gen, reward
  if (!batch) return IterationEnd::kStopped;
  add_reference(*batch, timer);                                       // ref
  add_values(*batch, timer);                                          // values
  const ExperienceReport experience = add_advantages(*batch, timer);  // adv
  if (stop_.reached()) return IterationEnd::kStopped;

  // From here on the weights change: the iteration is finished and counts.
  add(metrics, advance(iteration, *batch, experience));
  const MetricValues learned = learn(iteration, *batch, timer);  // update_critic, update_actor
  const std::vector<Sample> samples = batch->take_all();
  timer.start("output");
  write_rollout_file(iteration, samples);
  const auto record_iteration = [&] { record(iteration, samples, learned, metrics, timer); };
  const bool is_last = iteration == options_.training.iterations;
  if (is_last || (options_.checkpoint.every > 0 && iteration % options_.checkpoint.every == 0)) {
    timer.start("save_checkpoint");
    save_checkpoint(iteration, record_iteration);
  } else {
    record_iteration();
  }
  return IterationEnd::kFinished;
}

ScoreContext TrainJob::score_context(const ModelView& view) {
  return {ranks_.exec,   view,          model_.train_parallel(),
          model_.pass(), pass_options_, {files_.valid_ids(), options_.rollout.temperature}};
}

void TrainJob::add_reference(Batch& batch, PhaseTimer& timer) {
  if (!reference_) return;
  timer.start("ref");
  std::vector<Sample>& samples = batch.samples;
  const std::vector<int> mine = trainer_->trained_here(samples);
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

void TrainJob::add_values(Batch& batch, PhaseTimer& timer) {
  if (!critic_) return;
  timer.start("values");
  critic_->set_values(batch.samples);
}

ExperienceReport TrainJob::add_advantages(Batch& batch, PhaseTimer& timer) {
  timer.start("adv");
  return prepare_samples(batch.samples, options_.experience, kl_coef_);
}

MetricValues TrainJob::advance(std::int64_t iteration, const Batch& batch,
                               const ExperienceReport& experience) {
  learned_ = generator_.save_planner();
  prompt_batches_ += batch.groups.rounds;
  kl_coef_ = adapted_kl_coef(options_.experience.kl, kl_coef_, experience.kl, batch.size());
  const bool is_cut =
      options_.experience.correction.is_on() || rollouts_.sampling(iteration).truncates();
  MetricValues figures = experience_metrics(experience, options_.experience, is_cut);
  if (options_.dynamic.on) add(figures, group_metrics(batch.groups));
  const auto& generations = rollouts_.generations();
  if (!generations.empty()) add(figures, adaptive_metrics(generations));
  if (log_) add_generations(log_->run_file(), iteration, generations);
  return figures;
}

MetricValues TrainJob::learn(std::int64_t iteration, const Batch& batch, PhaseTimer& timer) {
  publish_seconds_ = 0.0;
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

namespace {

// The largest resident size of this process so far, in GiB.
double peak_memory_gib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1024.0 * 1024.0);
}

}  // namespace

// Stops the timer, and writes metrics and times of the iteration into all results.
void TrainJob::record(std::int64_t iteration, const std::vector<Sample>& samples,
                      const MetricValues& learned, MetricValues& metrics, PhaseTimer& timer) {
  timer.stop();
  std::int64_t tokens = 0;
  for (const Sample& s : samples) tokens += s.length();
  for (const auto& more : {rollout_metrics(samples), judge_.metrics("reward"), learned})
    add(metrics, more);
  metrics.emplace_back("perf/total_num_tokens", static_cast<double>(tokens));
  metrics.emplace_back("timing_s/publish", publish_seconds_);  // a part of update_actor
  metrics.emplace_back("timing_s/step", timer.total());
  metrics.emplace_back("perf/time_per_step", timer.total());
  metrics.emplace_back("perf/throughput",
                       static_cast<double>(tokens) / timer.total() / ranks_.size());
  std::vector<double> memory{peak_memory_gib()};
  all_reduce_max(ranks_.world(), memory);
  metrics.emplace_back("perf/max_memory_allocated_gb", memory.front());
  metrics.emplace_back("rollout/preemptions", static_cast<double>(rollouts_.preemptions()));
  const auto timing = reduce_timing(ranks_.world(), timer);
  std::vector<int> lengths;
  for (const Sample& s : samples) lengths.push_back(static_cast<int>(s.response.size()));
  if (log_) log_->add(iteration, metrics, timing, lengths);
}

void TrainJob::write_rollout_file(std::int64_t iteration, const std::vector<Sample>& samples) {
  const bool is_cut = rollouts_.sampling(iteration).truncates();
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
