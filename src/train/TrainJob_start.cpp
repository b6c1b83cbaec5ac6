// SPDX-License-Identifier: Apache-2.0
//
// The part of a training job before its first iteration.
#include <algorithm>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "run/LaterResults.hpp"
#include "run/RunConfig.hpp"
#include "train/TrainJob.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

// The files of the model. Throws Error where prompt and response exceed its context, or where it
// has no tokenizer.
ModelFiles open_model(const RunOptions& o) {
  ModelFiles files(o.model.directory, "Model/Directory");
  files.require_tokenizer("rewards are judged by the text of responses");
  files.require_context(o.max_positions(), kLengthLimits);
  return files;
}

fs::path checkpoints_path_of(const RunOptions& o) {
  return fs::path(o.output) / "checkpoints";
}

TrainingModelOptions model_options(const RunOptions& o, int rollout_tp) {
  return {o.model.type, o.training.tp, rollout_tp, o.pass_options(), o.adamw};
}

}  // namespace

TrainJob::TrainJob(const RunOptions& options, const std::string& config_text, const Ranks& ranks,
                   const StopRequest& stop, Spawner* spawner)
    : options_(options),
      config_text_(config_text),
      ranks_(ranks),
      stop_(&stop, ranks.world()),
      status_(options.output, options.training.iterations),
      files_(open_model(options)),
      evaluation_(options, files_),
      generator_(options.rollout, options.model.type, files_, ranks),
      judge_(options.judged_by(), files_, ranks, spawner,
             (fs::path(options.output) / "reward_logs").string(),
             {options.model.type, options.training.tp, options.pass_options().max_rows,
              static_cast<int>(options.max_positions())}),
      rollouts_(options, files_, ranks, generator_, judge_),
      kl_coef_(options.experience.kl.coef),
      model_(files_, ranks, model_options(options, generator_.smallest_degree())),
      pass_options_(options.pass_options()),
      checkpoints_(checkpoints_path_of(options), options.checkpoint.keep) {
  Fingerprint read;
  rollouts_.prompts().add_to(read);
  evaluation_.add_to(read);
  require_equal(ranks, "the prompts", std::to_string(read.value()));
  warn_of_repeated_prompts();
  model_.add_memory(plan_);
  if (options.experience.kl.coef > 0.0) {
    reference_ = std::make_unique<InferenceModel>("reference", files_, ranks, options.training.tp);
    reference_->add_memory(plan_, options.model.type);
  }
  if (options.has_critic()) {
    critic_ = std::make_unique<Critic>(options, files_, ranks);
    critic_->add_memory(plan_);
  }
  judge_.add_memory(plan_);
  generator_.add_memory(plan_);
}

void TrainJob::warn_of_repeated_prompts() const {
  const std::int64_t there = rollouts_.prompts().training_file_prompts();
  if (ranks_.rank() == 0 && there > 0 && there < options_.rollout.prompts)
    TAPER_WARN("Data/Prompts has " << count_text(there, "prompt")
                                   << ", fewer than Rollout/Prompts (" << options_.rollout.prompts
                                   << "): an iteration contains the same prompt several times");
}

void TrainJob::announce() const {
  if (!options_.rollout.lengths.empty())
    TAPER_INFO("responses end as prescribed by Rollout/Lengths ("
               << options_.rollout.lengths
               << "), not where the model ends them: use this run to measure "
               << "times; what it learns is meaningless");
  if (!evaluation_.is_on()) return;
  TAPER_INFO("held-out scores are of "
             << evaluation_.description()
             << format_text("; rewards are of responses sampled at temperature %g",
                            options_.rollout.sampling.temperature));
}

std::string TrainJob::memory_advice() const {
  const bool rollout =
      plan_.bytes(MemoryPhase::kRollout) >
      std::max(plan_.bytes(MemoryPhase::kTraining), plan_.bytes(MemoryPhase::kCritic));
  return rollout ? "lower Rollout/KV Memory MB, Rollout/Max Running or Rollout/Step Rows"
                 : "lower Training/Max Tokens, or set Training/Activation Checkpointing";
}

RunStart TrainJob::examine(const ResumePoint& from, CheckpointCheck check) const {
  require_memory(ranks_, plan_, memory_advice());
  judge_.require_judges();
  RunStart start = find_run_start(from, options_.seed, files_, ranks_, check);
  // A checkpoint has all weights but those of the reference.
  if (start.is_afresh() || reference_) files_.open_weights();
  if (start.is_afresh() && critic_) critic_->require_weights();
  from_rank_0(ranks_, [&] {
    if (start.is_afresh()) {
      if (!from.is_start())
        require_no_lost_checkpoints(options_.output,
                                    {options_.checkpoint.every, options_.training.iterations});
      return std::string();
    }
    if (critic_) critic_->require_state_in(start.checkpoint);
    if (!start.state.planner.empty()) generator_.require_loadable_planner(start.state.planner);
    if (from.is_own) IterationLog::require_readable(options_.output);
    return std::string();
  });
  if (!start.is_afresh() && from.is_own) (void)load_history();  // throws where it cannot be read
  return start;
}

void TrainJob::report_differences(const StateInfo& state) const {
  for (const auto& change : config_changes(state.config, config_text_))
    if (!change.starts_with("Output/Directory:"))  // that one is the user's order
      TAPER_WARN("differs from the checkpoint's run file: " << change);
  const std::string layout =
      to_string(RankGrid{model_.train_parallel().group().size(), model_.dp_group().size()});
  if (!state.layout.empty() && state.layout != layout)
    TAPER_INFO("earlier iterations were trained in layout (TPxDP) "
               << state.layout << ", from here on it is " << layout
               << ": gradients are summed in another order, so the results are close to those of "
                  "an unchanged run (equal up to rounding, not bit for bit)");
}

void TrainJob::report_start(const RunStart& start) const {
  if (ranks_.rank() != 0) return;
  const std::int64_t done = start.is_afresh() ? 0 : start.state.iteration;
  if (!start.is_afresh()) {
    report_differences(start.state);
    if (const std::string loss = IterationLog::lost_metrics(options_.output); !loss.empty())
      TAPER_WARN(loss);
  }
  report_later_results(options_.output, done, Removal::kPlanned);
}

void TrainJob::create() {
  // The ranks that lead the smallest groups, and so any group.
  const bool leads = ranks_.groups.tp_group(generator_.smallest_degree()).rank() == 0;
  judge_.start_workers(leads ? Judge::Start::kNow : Judge::Start::kOnDemand);
  arena_ = std::make_unique<Arena>(plan_);
  const ConstFloatMatrix rope = files_.rope_table(static_cast<int>(options_.max_positions()));
  model_.create(*arena_, rope);
  if (reference_) reference_->load(ranks_.exec, options_.model.type, *arena_);
  if (critic_) critic_->create(*arena_);
  judge_.load_models(*arena_);
  generator_.create(model_.packed(), *arena_, rope);
  const PolicyTrainerOptions trainer{
      options_.loss_in_use(),
      {options_.schedule, options_.training.mini_batches, options_.training.epochs}};
  const auto publish = [this] {
    const Timer timer;
    ranks_.progress.set_phase("publish");
    model_.publish();
    ranks_.progress.set_phase("update_actor");
    publish_seconds_ += timer.seconds();
  };
  trainer_ = std::make_unique<PolicyTrainer>(
      trainer, TrainedModel{score_context(model_.train_view()), model_.dp_group(),
                            model_.gradients(), model_.optimizer(), publish});
}

// Weights from a checkpoint or from the model directory; the iterations already finished.
std::int64_t TrainJob::restore(const ResumePoint& from) {
  std::optional<StateInfo> state;
  const auto critic = critic_ ? std::optional(critic_->saved()) : std::nullopt;
  if (!from.checkpoint.empty())
    state = CheckpointStore::load(from.checkpoint, ranks_, files_, model_, critic);
  else if (!from.store.empty())
    state = CheckpointStore(from.store, options_.checkpoint.keep)
                .load_newest(ranks_, files_, model_, critic);
  if (!state) {
    model_.load_masters();
    if (critic_) critic_->load_start();
    return 0;
  }
  // Of the one that was loaded, which need not be the one that examine() saw.
  require_same_seed(from.checkpoint.empty() ? from.store : from.checkpoint, state->seed,
                    options_.seed);
  if (!state->planner.empty()) generator_.load_planner(state->planner);
  if (options_.experience.kl.control == KlControl::kAdaptive && state->kl_coef)
    kl_coef_ = *state->kl_coef;
  prompt_batches_ = state->prompt_batches.value_or(state->iteration);
  report_differences(*state);
  TAPER_INFO((from.is_own ? "resuming after iteration " : "a new run, after iteration ")
             << state->iteration << (from.is_own ? "" : " of another one"));
  return state->iteration;
}

}  // namespace taper
