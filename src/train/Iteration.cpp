// SPDX-License-Identifier: Apache-2.0
//
// The iteration of a training job, and its stages.
#include "base/Log.hpp"
#include "comm/Collectives.hpp"
#include "device/Devices.hpp"
#include "device/HostMemory.hpp"
#include "results/RolloutFile.hpp"
#include "rl/Metrics.hpp"
#include "rollout/GeneratedSample.hpp"
#include "rollout/GenerationRecord.hpp"
#include "train/CallTable.hpp"
#include "train/TrainJob.hpp"

namespace taper {

IterationEnd TrainJob::iterate(std::int64_t iteration) {
  ranks_.progress.set_iteration(iteration);
  PhaseTimer timer(ranks_.progress);
  CallRecord calls({[&timer](const char* phase) { timer.start(phase); },
                    [&timer](const char* phase) { timer.expect(phase); }},
                   ranks_.progress);
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
  auto batch = collect(iteration, timer, calls);  // gen, reward
  if (!batch) return put_off(iteration);
  add_figures(*batch, calls);                                         // ref, values
  const ExperienceReport experience = add_advantages(*batch, timer);  // adv
  if (stop().reached()) return put_off(iteration);

  // From here on the weights change: the iteration will be finished, whatever stop is asked for.
  figures_.reset();
  advance(*batch, experience);
  add(metrics, experience_figures(iteration, *batch, experience));
  MetricValues update = learn(iteration, *batch, calls);  // update_critic, update_actor
  add(update, train_draft(*batch, timer));                // update_draft
  timer.start("output");
  write_rollout_file(iteration, *batch);
  const bool is_due = is_checkpoint_due(iteration);
  if (is_due) timer.start("save_checkpoint");
  conclude(iteration, is_due, [&] { record(iteration, *batch, update, metrics, timer, calls); });
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
  load_planner(planner_state_);     // evaluations leave no trace in it
  if (!figures_) stop().reached();  // agrees on the reason
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

std::vector<ModelCall> TrainJob::scoring_calls(Where where) {
  std::vector<ModelCall> calls;
  const auto add = [&](const char* name, const char* model, const ModelPlace& place,
                       std::vector<float> Sample::*figure, const auto& score) {
    if (place.layout.is_on_all(ranks_.size()) != (where == Where::kOnAll)) return;
    const auto work = [score](SampleSet& samples) {
      score(samples);
      return MetricValues{};
    };
    calls.push_back({name,
                     model,
                     place.layout,
                     place.group(),
                     work,
                     {SampleFigure::of(figure)},
                     {place.replica(), score}});
  };
  if (reference_)
    add("ref", "reference", reference_->place(), &Sample::ref_log_probs,
        [this](auto& samples) { reference_->score(samples); });
  if (critic_)
    add("values", "critic", critic_->place(), &Sample::values,
        [this](auto& samples) { critic_->set_values(samples); });
  return calls;
}

// Models that score on some ranks do it while reward models judge, unless prompts may be drawn
// again: then only the responses that stay are scored.
std::optional<Batch> TrainJob::collect(std::int64_t iteration, PhaseTimer& timer,
                                       CallRecord& calls) {
  std::vector<ModelCall> scoring;
  if (!options_.dynamic.on) scoring = scoring_calls(Where::kOnSome);
  Rollouts::Beside beside{scoring, nullptr, placement_.generation};
  if (!is_flat()) beside.record = &calls;
  if (early_) {
    early_->begin_iteration(kl_coef_);
    beside.early = &*early_;
  }
  auto batch = rollouts_.collect(iteration, stop(), timer, beside);
  if (batch)
    for (Sample& dropped : batch->unscored.here()) {  // they take no further part
      dropped.values.clear();
      dropped.ref_log_probs.clear();
    }
  return batch;
}

void TrainJob::add_figures(Batch& batch, CallRecord& calls) {
  std::vector<ModelCall> scoring;
  if (options_.dynamic.on) scoring = scoring_calls(Where::kOnSome);
  for (ModelCall& call : scoring_calls(Where::kOnAll)) scoring.push_back(std::move(call));
  make_calls(batch.samples, ranks_.world(), scoring, &calls);
}

ExperienceReport TrainJob::add_advantages(Batch& batch, PhaseTimer& timer) {
  timer.start("adv");
  return prepare_samples(batch.samples, options_.experience, kl_coef_);
}

void TrainJob::advance(const Batch& batch, const ExperienceReport& experience) {
  planner_state_ = save_planner();
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
  if (early_ && early_->scores())
    figures.emplace_back("rollout/early_score_share", early_->scored_share());
  return figures;
}

MetricValues TrainJob::learn(std::int64_t iteration, Batch& batch, CallRecord& calls) {
  if (drafts_) drafts_->begin(batch.samples.response_tokens());
  policy_.take_publish_seconds();  // of the start
  std::vector<ModelCall> updates;
  MetricValues figures;
  if (critic_) {
    figures = value_metrics(batch.samples);
    updates.push_back(
        {"update_critic", "critic", critic_->place().layout, critic_->place().group(),
         [this](SampleSet& samples) { return critic_metrics(critic_->update(samples)); }});
  }
  const bool policy_learns = !critic_ || !critic_->learns_alone(iteration);
  if (policy_learns)
    updates.push_back({"update_actor", "policy", policy_.place().layout, policy_.place().group(),
                       [this](SampleSet& samples) {
                         return update_metrics(policy_.trainer().update(samples),
                                               options_.loss_in_use().kl_coef);
                       }});
  add(figures, make_calls(batch.samples, ranks_.world(), updates, &calls));
  if (options_.training.early_learning)
    figures.emplace_back("actor/early_token_share",
                         static_cast<double>(early_->tokens()) / batch.samples.response_tokens());
  if (policy_learns) policy_.publish_beyond();
  if (balance_.is_on()) {
    balance();
    add(figures, balance_.metrics());
  }
  return figures;
}

void TrainJob::balance() {
  const bool learns = policy_.model() != nullptr;
  balance_.note(learns ? policy_.take_work() : TrainedWork{});
  if (learns) policy_.trainer().set_speeds(balance_.shares(placement_.policy));
  if (critic_) critic_->set_speeds(balance_.shares(*placement_.critic));
}

MetricValues TrainJob::train_draft(Batch& batch, PhaseTimer& timer) {
  if (!drafts_) return {};
  timer.start("update_draft");
  return draft_metrics(drafts_->learn(batch.samples));
}

// Stops the timer, and writes metrics and times of the iteration into all results.
void TrainJob::record(std::int64_t iteration, const Batch& batch, const MetricValues& update,
                      MetricValues& metrics, PhaseTimer& timer, const CallRecord& calls) {
  timer.stop();
  const std::vector<SampleSummary> samples = batch.summaries();
  std::int64_t tokens = 0;
  for (const SampleSummary& s : samples) tokens += s.length();
  for (const auto& more : {rollout_metrics(samples), judge_.metrics("reward"), update})
    add(metrics, more);
  metrics.emplace_back("perf/total_num_tokens", static_cast<double>(tokens));
  // A part of update_actor, or after it.
  metrics.emplace_back("timing_s/publish", policy_.take_publish_seconds());
  metrics.emplace_back("timing_s/step", timer.total());
  metrics.emplace_back("perf/time_per_step", timer.total());
  metrics.emplace_back("perf/throughput",
                       static_cast<double>(tokens) / timer.total() / ranks_.size());
  std::vector<std::int64_t> memory{process_memory_peak(), device_memory_taken()};
  all_reduce_max(ranks_.world(), memory);
  metrics.emplace_back("perf/max_memory_allocated_gb",  // GiB; the name is as in verl
                       static_cast<double>(memory[0]) / (1 << 30));
  if (memory[1] > 0)
    metrics.emplace_back("perf/gpu_memory_gb", static_cast<double>(memory[1]) / (1 << 30));
  std::vector<std::int64_t> preemptions{rollouts_.preemptions()};
  all_reduce_sum(ranks_.world(), preemptions);
  metrics.emplace_back("rollout/preemptions", static_cast<double>(preemptions.front()));
  const auto timing = reduce_timing(ranks_.world(), timer);
  std::vector<int> lengths;
  for (const SampleSummary& s : samples) lengths.push_back(s.response_tokens);
  const std::vector<DoneCall> done =
      is_flat() ? std::vector<DoneCall>{} : gather_calls(ranks_.world(), calls.spans());
  if (!log()) return;
  add_calls(log()->run_file(), iteration, done);
  if (balance_.is_on()) balance_.add_rows(log()->run_file(), iteration);
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
