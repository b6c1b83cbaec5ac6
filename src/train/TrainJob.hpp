// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/Checkpoint.hpp"
#include "reward/Judge.hpp"
#include "rl/ModelCalls.hpp"
#include "rollout/Generator.hpp"
#include "run/Job.hpp"
#include "run/PhaseTimer.hpp"
#include "train/Balance.hpp"
#include "train/Critic.hpp"
#include "train/EarlyWork.hpp"
#include "train/Evaluation.hpp"
#include "train/Policy.hpp"
#include "train/Reference.hpp"
#include "train/Rollouts.hpp"
#include "train/RunOptions.hpp"
#include "train/TrainedDrafts.hpp"

namespace taper {

// The synchronous RLHF iteration: prompts -> generate -> reward, reference, values -> advantages ->
// update of critic and policy -> publish.
class TrainJob final : public Job {
 public:
  // `config_text` is the parameters in use, for the results. The spawner is needed if a reward is a
  // command. Collective over the world.
  TrainJob(const RunOptions& options, const std::string& config_text, const Ranks& ranks,
           const StopRequest& stop, Spawner* spawner = nullptr);

  const MemoryPlan& memory_plan() const override { return plan_; }

 private:
  TrainJob(const RunOptions& options, const std::string& config_text, const Ranks& ranks,
           const StopRequest& stop, Spawner* spawner, const Placement& placement);
  const ModelFiles& files() const override { return files_; }
  TrainingModel* trained_model() override { return policy_.model(); }
  std::vector<CheckpointPart> parts() override;
  std::string memory_advice() const override;
  void require_inputs(const RunStart& start) const override;
  void require_state(const std::filesystem::path& checkpoint,
                     const StateInfo& state) const override;
  void create() override;
  void load_start() override;
  void set_state(const StateInfo& state, const std::filesystem::path& place) override;
  void add_state(StateInfo& state) const override;
  std::int64_t planned_iterations() const override { return options_.training.iterations; }
  void begin() override;
  // A stop request is honored before, during and after generation and before the update; of what
  // the unfinished iteration has done, only the journal is kept. From the update on the iteration
  // is finished first.
  IterationEnd iterate(std::int64_t iteration) override;
  IterationEnd finish() override;
  void report_completed() const override;

  void report_placement() const;
  void create_early_work();
  void warn_of_repeated_prompts() const;
  // What an iteration ends with if a stop was agreed on. Collective over the world.
  IterationEnd put_off(std::int64_t iteration);
  // Whether all models are on all ranks.
  bool is_flat() const { return placement_.is_flat(ranks_.size()); }
  // What the reference and the critic say of the samples: calls on some ranks, which may overlap
  // with those of reward models, and calls on all.
  enum class Where { kOnSome, kOnAll };
  std::vector<ModelCall> scoring_calls(Where where);
  // The stages of an iteration, each collective over the world.
  std::optional<Batch> collect(std::int64_t iteration, PhaseTimer& timer, CallRecord& calls);
  void add_figures(Batch& batch, CallRecord& calls);
  ExperienceReport add_advantages(Batch& batch, PhaseTimer& timer);
  MetricValues learn(std::int64_t iteration, Batch& batch, CallRecord& calls);
  // Learns who is slow, and deals the samples of the next iterations by that. Collective over the
  // world.
  void balance();
  MetricValues train_draft(Batch& batch, PhaseTimer& timer);
  // Of the generator, where there is one. The first is collective over the world.
  std::string save_planner() const;
  void load_planner(const std::string& state);
  // Makes the iteration count: what the next one starts from. Collective over the world.
  void advance(const Batch& batch, const ExperienceReport& experience);
  // Metrics of what the iteration learns from. Not collective.
  MetricValues experience_figures(std::int64_t iteration, const Batch& batch,
                                  const ExperienceReport& experience) const;
  // Collective over the world.
  void record(std::int64_t iteration, const Batch& batch, const MetricValues& update,
              MetricValues& metrics, PhaseTimer& timer, const CallRecord& calls);
  // The held-out figures of the weights as they are; nothing if a stop request came. Collective
  // over the world.
  std::optional<MetricValues> evaluate();
  // Of the weights after the last iteration: keeps them if they are the best so far. Collective
  // over the world.
  void note(const MetricValues& figures);
  // Evaluates the weights after the last iteration, unless the results have that already. False
  // if a stop request came: the job that goes on will do it. Collective over the world.
  bool evaluate_at_the_end();
  // Collective over the world.
  void write_rollout_file(std::int64_t iteration, const Batch& batch);

  RunOptions options_;
  const Ranks& ranks_;
  Placement placement_;
  RankBlocks blocks_;
  ModelFiles files_;
  std::optional<MetricValues> figures_;  // of the weights after the last iteration
  MemoryPlan plan_;
  MemoryPhase generation_phase_, training_phase_, scoring_phase_, critic_phase_;  // of the memory
  std::unique_ptr<Generator> generator_;  // null on ranks that do not generate
  Judge judge_;
  Rollouts rollouts_;
  Evaluation evaluation_;
  std::string planner_state_;  // the planner after the last finished iteration
  double kl_coef_;             // of the KL in the reward, after the last finished iteration
  int generation_tp_;          // smallest degree of the generation
  Policy policy_;
  std::unique_ptr<Reference> reference_;  // if there is a KL
  std::unique_ptr<Critic> critic_;        // if the estimator needs one
  std::optional<EarlyWork> early_;        // if ranks work at what has ended while others generate
  Balance balance_;
  std::unique_ptr<TrainedDrafts> drafts_;  // if what drafts is trained
  std::unique_ptr<Arena> arena_;
};

}  // namespace taper
