// SPDX-License-Identifier: Apache-2.0
#include "train/TrainJob.hpp"

#include <algorithm>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "comm/Collectives.hpp"
#include "profile/RunIdentity.hpp"
#include "results/RunDirectory.hpp"
#include "session/LayoutChecks.hpp"
#include "session/SharedArena.hpp"
#include "train/PlacementFile.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

// The files of the model. Throws Error if prompt and response exceed its context, or if it
// has no tokenizer.
ModelFiles open_model(const RunOptions& o) {
  ModelFiles files(o.model.directory, "Model/Directory");
  files.require_tokenizer("rewards are judged by the text of responses");
  files.require_context(o.max_positions(), kLengthLimits);
  return files;
}

// With what the placement says of the ranks that generate.
GeneratorOptions generator_options(const RunOptions& o, const Placement& placement) {
  GeneratorOptions generator = o.rollout;
  if (o.rollout.layout.empty()) generator.tp = placement.generation.grid.tp;
  return generator;
}

std::unique_ptr<Generator> make_generator(const RunOptions& o, const Placement& placement,
                                          ModelFiles& files, const Ranks* ranks,
                                          MemoryPhase phase) {
  if (ranks == nullptr) return nullptr;
  return std::make_unique<Generator>(generator_options(o, placement), o.model.type, files, *ranks,
                                     phase);
}

Judge::ModelPlaces reward_places(const RunOptions& o, const Placement& placement,
                                 const RankBlocks& blocks) {
  Judge::ModelPlaces places;
  auto layout = placement.scoring.begin() + (o.has_reference() ? 1 : 0);
  for (const RewardOptions& reward : o.judged_by())
    if (reward.kind == RewardKind::kModel) places[reward.name] = blocks.place(*layout++);
  return places;
}

// Throws Error if the plan that has placed the models is that of another run. Collective over the
// world.
void require_plan(const RunOptions& o, const Ranks& ranks) {
  const ProfileIdentity here =
      gather_identity(ModelFiles(o.model.directory, "Model/Directory"), o.model.type, ranks);
  on_rank_0(ranks, [&] {
    require_fitting_placement(o.placement.file, read_placement_file(o.placement.file), ranks.size(),
                              o.models().names(), here);
  });
}

// Whether the reference scores with the passes of the policy, early.
bool scores_by_policy(const RunOptions& o, const Placement& placement) {
  return o.training.scores_early() && o.has_reference() &&
         placement.scoring.front() == placement.policy;
}

// Throws Error naming the option that does not go with where the models are. Collective over the
// world.
Placement place_models(const RunOptions& o, const Ranks& ranks) {
  if (o.placement.strategy == PlacementStrategy::kPlan) require_plan(o, ranks);
  const Placement placement = place(o.placement, o.models(), ranks.chain);
  require_layout("Rollout/Layout", o.rollout.layout, placement.generation.grid.ranks());
  require_equal_replicas(o, placement);
  if (placement.policy.is_on_all(ranks.size()) && placement.generation.is_on_all(ranks.size()))
    return placement;
  TAPER_VALIDATE(!o.rollout.speculation.trains_draft(),
                 "Speculation/Train Steps is "
                     << o.rollout.speculation.train_steps
                     << ", but Placement has policy or generation on some ranks only (what drafts "
                        "is trained where the policy is, on all ranks); set Train Steps to 0, or "
                        "place both on all ranks");
  TAPER_VALIDATE(!o.rollout.rounds.is_priced(),
                 "Rollout/Tail Prompts is 0, by price, but Placement has policy or generation on "
                 "some ranks only (not all ranks know the price); set a factor such as 1.25, or "
                 "place both on all ranks");
  return placement;
}

// `load` takes the state of the planner from a checkpoint: another version may have written it.
template <class Load>
void with_advice(const fs::path& checkpoint, Load&& load) {
  try {
    load();
  } catch (const Error& error) {
    TAPER_FAIL(error.code(), "checkpoint "
                                 << path_text(checkpoint)
                                 << " cannot be used with Rollout/Mode advise or adaptive ("
                                 << error.what()
                                 << "); continue with Rollout/Mode=static, which samples the same "
                                    "tokens, with the version of Taper that wrote it, or start "
                                    "over with --resume none");
  }
}

RunSetup setup_of(const RunOptions& o, const std::string& config, const ModelLayout& policy) {
  return {.directory = RunDirectory(o.output),
          .config = config,
          .seed = o.seed,
          .grid = policy.grid,
          .is_exact = o.training.exactness == Exactness::kLayout,
          .unit = "iteration",
          .checkpoints = {o.checkpoint.every, o.training.iterations},
          .keep = o.checkpoint.keep,
          .best = o.evaluation.best,
          .evaluate_every = o.evaluation.every,
          .journal = o.has_journal()};
}

}  // namespace

TrainJob::TrainJob(const RunOptions& options, const std::string& config_text, const Ranks& ranks,
                   const StopRequest& stop, Spawner* spawner)
    : TrainJob(options, config_text, ranks, stop, spawner, place_models(options, ranks)) {}

TrainJob::TrainJob(const RunOptions& options, const std::string& config_text, const Ranks& ranks,
                   const StopRequest& stop, Spawner* spawner, const Placement& placement)
    : Job(setup_of(options, config_text, placement.policy), ranks, &stop),
      options_(options),
      ranks_(ranks),
      placement_(placement),
      blocks_(ranks, placement.block_sizes(ranks.size())),
      files_(open_model(options)),
      generation_phase_(plan_.phase("generation")),
      // What works early needs memory beside the KV cache.
      training_phase_(options.training.early_learning || scores_by_policy(options, placement)
                          ? generation_phase_
                          : plan_.phase("training")),
      scoring_phase_(options.training.scores_early() ? generation_phase_ : training_phase_),
      critic_phase_(options.training.scores_early() ? generation_phase_ : plan_.phase("critic")),
      generator_(make_generator(options, placement, files_,
                                blocks_.find(placement.generation.ranks()), generation_phase_)),
      judge_(options.judged_by(), files_, ranks, spawner, setup().directory.reward_logs().string(),
             {options.model.type, options.training.tp, options.pass_options().max_rows,
              static_cast<int>(options.max_positions()), scoring_phase_},
             reward_places(options, placement, blocks_)),
      rollouts_(options, files_, ranks, generator_.get(), judge_),
      evaluation_(options, files_, ranks, generator_.get(), judge_),
      kl_coef_(options.experience.kl.coef),
      generation_tp_(from_rank_0(ranks, [this] { return generator_->smallest_degree(); })),
      policy_(options_, files_, blocks_, placement, generation_tp_, training_phase_),
      balance_(options.balance, ranks) {
  placement_.generation.grid = {generation_tp_,
                                placement_.generation.grid.ranks() / generation_tp_};
  Fingerprint read;
  rollouts_.prompts().add_to(read);
  evaluation_.add_to(read);
  require_equal(ranks, "the prompts", std::to_string(read.value()));
  warn_of_repeated_prompts();
  report_placement();
  if (ranks.rank() == 0)
    for (const std::string& text : early_work_warnings(options, placement, ranks.size()))
      TAPER_WARN(text);
  policy_.add_memory(plan_);
  if (options.has_reference()) {
    const ModelPlace at = blocks_.place(placement.scoring.front());
    MemoryPhase phase = training_phase_;  // of the policy's passes, if it borrows them
    if (Reference::has_own_passes(options, at, policy_))
      phase = options.training.scores_early() ? scoring_phase_ : plan_.phase("reference");
    reference_ = std::make_unique<Reference>(options_, files_, at, policy_, phase);
    reference_->add_memory(plan_);
  }
  if (options.has_critic()) {
    critic_ = std::make_unique<Critic>(options, files_, ranks, blocks_.place(*placement.critic),
                                       critic_phase_);
    critic_->add_memory(plan_);
  }
  drafts_ = make_trained_drafts(options, files_, ranks, plan_, training_phase_);
  if (drafts_) drafts_->add_memory(plan_);
  judge_.add_memory(plan_);
  if (generator_) generator_->add_memory(plan_);
}

void TrainJob::report_placement() const {
  if (is_flat()) return;
  TAPER_INFO(describe(placement_, options_.models())
             << "; ranks wait for each other up to " << format_text("%g", options_.hang_seconds)
             << " s (Run/Hang Seconds)");
  const std::vector<int> idle = placement_.idle_ranks(ranks_.size());
  if (ranks_.rank() == 0 && !idle.empty())
    TAPER_WARN((idle.size() == 1 ? "rank " : "ranks ")
               << join(idle) << " " << (idle.size() == 1 ? "has" : "have")
               << " no model and will do nothing (Placement)");
}

void TrainJob::warn_of_repeated_prompts() const {
  const std::int64_t there = rollouts_.prompts().training_file_prompts();
  if (ranks_.rank() == 0 && there > 0 && there < options_.rollout.prompts)
    TAPER_WARN("Data/Prompts has " << count_text(there, "prompt")
                                   << ", fewer than Rollout/Prompts (" << options_.rollout.prompts
                                   << "): an iteration contains the same prompt several times");
}

std::string TrainJob::memory_advice() const {
  const std::string generate =
      "lower Rollout/KV Memory MB, Rollout/Max Running or Rollout/Step Rows";
  const std::string train = "lower Training/Max Tokens, or set Training/Activation Checkpointing";
  if (options_.training.scores_early())
    return generate + "; " + train + "; or switch Training/Early Scoring and Early Learning off";
  const bool generation = plan_.bytes(generation_phase_) >
                          std::max(plan_.bytes(training_phase_), plan_.bytes(critic_phase_));
  return generation ? generate : train;
}

std::vector<CheckpointPart> TrainJob::parts() {
  std::vector<CheckpointPart> parts;
  if (critic_) parts.push_back(critic_->saved());
  if (drafts_)
    for (CheckpointPart& part : drafts_->saved()) parts.push_back(std::move(part));
  return parts;
}

void TrainJob::require_inputs(const RunStart& start) const {
  judge_.require_judges();
  // A checkpoint has all weights but those of the reference.
  if (start.is_afresh() || reference_) files_.open_weights();
  if (start.is_afresh() && critic_) critic_->require_weights();
}

void TrainJob::require_state(const fs::path& checkpoint, const StateInfo& state) const {
  if (critic_) critic_->require_state_in(checkpoint);
  try {
    rollouts_.require_state(state);
  } catch (const Error& error) {
    TAPER_FAIL(error.code(), "checkpoint " << path_text(checkpoint)
                                           << " cannot be used with these Rollout/Rounds ("
                                           << error.what() << ")");
  }
  if (!state.planner.empty())
    with_advice(checkpoint, [&] { generator_->require_loadable_planner(state.planner); });
}

void TrainJob::create() {
  if (ranks_.rank() == 0) fs::create_directories(setup().directory.rollouts());
  // The ranks that lead the smallest groups, and so any group.
  const bool leads = generator_ && generator_->ranks().groups.tp_group(generation_tp_).rank() == 0;
  judge_.start_workers(leads ? Judge::Start::kNow : Judge::Start::kOnDemand);
  arena_ = make_arena(ranks_, plan_);
  const ConstFloatMatrix rope = files_.rope_table(static_cast<int>(options_.max_positions()));
  policy_.create(*arena_, rope);
  if (reference_) reference_->create(*arena_, rope);
  if (critic_) critic_->create(*arena_);
  if (drafts_) drafts_->create(*arena_, policy_);
  judge_.load_models(*arena_);
  const auto drafts = drafts_ ? drafts_->packed() : std::vector<const PackedModel*>{};
  if (generator_) generator_->create(policy_.packed(), *arena_, rope, drafts);
  if (options_.training.scores_early()) create_early_work();
}

void TrainJob::create_early_work() {
  std::vector<ModelCall> scoring = judge_.model_calls();
  for (const Where where : {Where::kOnSome, Where::kOnAll})
    for (ModelCall& call : scoring_calls(where)) scoring.push_back(std::move(call));
  if (options_.training.early_learning || !scoring.empty())
    early_.emplace(options_, ranks_, placement_, policy_, judge_, std::move(scoring));
}

void TrainJob::load_start() {
  policy_.load_start();
  policy_.publish_beyond();
  if (critic_) critic_->load_start();
  planner_state_ = save_planner();
}

// The same on all ranks, also those that do not generate: any of them may write it.
std::string TrainJob::save_planner() const {
  const std::string state = generator_ ? generator_->save_planner() : std::string();
  return placement_.generation.is_on_all(ranks_.size())
             ? state
             : broadcast_string(ranks_.world(), state, 0);
}

void TrainJob::load_planner(const std::string& state) {
  if (generator_) generator_->load_planner(state);
}

void TrainJob::set_state(const StateInfo& state, const fs::path& place) {
  policy_.publish_beyond();
  if (!state.planner.empty()) with_advice(place, [&] { load_planner(state.planner); });
  planner_state_ = save_planner();
  if (options_.experience.kl.control == KlControl::kAdaptive && state.kl_coef)
    kl_coef_ = *state.kl_coef;
  rollouts_.set_state(state);
  judge_.set_anchors(state.anchors);
}

void TrainJob::add_state(StateInfo& state) const {
  state.planner = planner_state_;
  state.kl_coef = kl_coef_;
  rollouts_.add_state(state);
  state.anchors = judge_.anchors();
}

void TrainJob::begin() {
  if (!options_.rollout.lengths.empty())
    TAPER_INFO("responses end as prescribed by Rollout/Lengths ("
               << options_.rollout.lengths
               << "), not where the model ends them: use this run to measure "
               << "times; what it learns is meaningless");
  if (const RoundOptions& rounds = options_.rollout.rounds;
      ranks_.rank() == 0 && rounds.mode == RoundMode::kTail && rounds.samples > 1.0)
    TAPER_WARN("Rollout/Tail Samples is "
               << format_text("%g", rounds.samples)
               << ": of each prompt the shortest responses are trained, long ones are "
                  "under-represented; set it to 1 for an unbiased sample");
  if (evaluation_.is_on())
    TAPER_INFO("held-out scores are of "
               << evaluation_.description()
               << format_text("; rewards are of responses sampled at temperature %g",
                              options_.rollout.sampling.temperature));
  if (done() >= total())
    TAPER_INFO("nothing to do: iteration "
               << done() << " of " << total()
               << " is finished (raise Training/Iterations to continue)");
}

bool TrainJob::evaluate_at_the_end() {
  std::vector<std::int64_t> has_figures{!evaluation_.is_on() ||
                                        (log() && log()->has_final_evaluation())};
  all_reduce_max(ranks_.world(), has_figures);  // rank 0 has the log
  if (has_figures.front() != 0) return true;
  ranks_.progress.set_iteration(done() + 1);  // evaluations come before an iteration
  ranks_.progress.set_phase("testing");
  const auto figures = evaluate();
  if (!figures) return false;
  note(*figures);
  if (log()) log()->add_final_evaluation(done(), *figures);
  return true;
}

IterationEnd TrainJob::finish() {
  save_unsaved();  // if the run ends before its last iteration
  return evaluate_at_the_end() ? IterationEnd::kFinished : IterationEnd::kStopped;
}

// Of the run in this directory, by however many jobs.
void TrainJob::report_completed() const {
  const std::int64_t first = log()->first_iteration(), count = done() - first + 1;
  TAPER_INFO("completed: " << count_text(count, "iteration")
                           << (first > 1 && count > 0 ? " (" + std::to_string(first) + " to " +
                                                            std::to_string(done()) + ")"
                                                      : "")
                           << ", results in " << path_text(options_.output));
  if (rollouts_.waiting() > 0)
    TAPER_INFO(count_text(rollouts_.waiting(), "prompt")
               << " wait for a long round and were not trained (with more iterations they come)");
  const BestOptions& by = options_.evaluation.best;
  const auto best = history().best();
  if (!best) return;
  const std::string which =
      best->iteration == 0 ? "the initial weights of the run" : iteration_name(best->iteration);
  TAPER_INFO("best by " << by.metric << ": " << which << format_text(" (%.4f)", best->value));
  if (history().is_exhausted())
    TAPER_INFO(
        "ended early: "
        << count_text(history().without_progress(), "evaluation")
        << " without progress of more than " << format_text("%g", by.min_delta)
        << " (Evaluation/Patience, Min Delta; with more patience the same command continues)");
}

}  // namespace taper
