// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/Checkpoint.hpp"
#include "instance/InferenceModel.hpp"
#include "instance/TrainingModel.hpp"
#include "reward/Judge.hpp"
#include "rl/PolicyTrainer.hpp"
#include "rollout/Generator.hpp"
#include "rollout/TrainedExits.hpp"
#include "run/Job.hpp"
#include "run/PhaseTimer.hpp"
#include "train/Critic.hpp"
#include "train/Evaluation.hpp"
#include "train/Rollouts.hpp"
#include "train/RunOptions.hpp"
#include "train/TrainedDraft.hpp"

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
  const ModelFiles& files() const override { return files_; }
  TrainingModel& model() override { return model_; }
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

  void warn_of_repeated_prompts() const;
  // What an iteration ends with if a stop was agreed on. Collective over the world.
  IterationEnd put_off(std::int64_t iteration);
  // The stages of an iteration, each collective over the world.
  void add_reference(Batch& batch, PhaseTimer& timer);
  void add_values(Batch& batch, PhaseTimer& timer);
  ExperienceReport add_advantages(Batch& batch, PhaseTimer& timer);
  MetricValues learn(std::int64_t iteration, Batch& batch, PhaseTimer& timer);
  MetricValues train_draft(Batch& batch, PhaseTimer& timer);
  // Makes the iteration count: what the next one starts from. Not collective.
  void advance(const Batch& batch, const ExperienceReport& experience);
  // Metrics of what the iteration learns from. Not collective.
  MetricValues experience_figures(std::int64_t iteration, const Batch& batch,
                                  const ExperienceReport& experience) const;
  // Collective over the world.
  void record(std::int64_t iteration, const Batch& batch, const MetricValues& update,
              MetricValues& metrics, PhaseTimer& timer);
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
  TrainedExitsOptions exits_options() const;
  std::vector<const PackedModel*> trained_drafts() const;
  PassContext pass_context(const ModelView& view);

  RunOptions options_;
  const Ranks& ranks_;
  ModelFiles files_;
  std::optional<MetricValues> figures_;  // of the weights after the last iteration
  MemoryPlan plan_;
  MemoryPhase rollout_phase_, training_phase_, critic_phase_;  // of the memory
  Generator generator_;
  Judge judge_;
  Rollouts rollouts_;
  Evaluation evaluation_;
  std::string planner_state_;  // the planner after the last finished iteration
  double kl_coef_;             // of the KL in the reward, after the last finished iteration
  TrainingModel model_;
  std::unique_ptr<InferenceModel> reference_;
  std::unique_ptr<Critic> critic_;  // if the estimator needs one
  // What drafts, if it follows the policy: one of the two.
  std::unique_ptr<TrainedDraft> draft_;
  std::optional<ExitFiles> exit_files_;
  std::unique_ptr<TrainedExits> exits_;
  TrainPassOptions pass_options_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<PolicyTrainer> trainer_;
  double publish_seconds_ = 0.0;  // of the current iteration, on this rank
};

}  // namespace taper
