// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "driver/Checkpoint.hpp"
#include "driver/Generation.hpp"
#include "driver/IterationLog.hpp"
#include "driver/Options.hpp"
#include "driver/PromptSource.hpp"
#include "driver/TrainingModel.hpp"
#include "rl/PolicyTrainer.hpp"

namespace taper {

// The synchronous RLHF iteration: prompts -> generate -> reward, reference -> advantages -> update
// -> publish.
class TrainJob {
 public:
  // `config_text` is the parameters in use, for the results. Collective over the world.
  TrainJob(const RunOptions& options, const std::string& config_text, const Ranks& ranks);

  // What each rank will hold.
  const MemoryPlan& memory_plan() const { return plan_; }

  // Allocates, loads and runs the iterations that are left. `resume` is "auto" (the newest usable
  // checkpoint of the output directory, if there is one), "none", or a checkpoint directory.
  void run(const std::string& resume);

 private:
  void create();
  std::int64_t restore(const std::string& resume);
  void save_checkpoint(std::int64_t iteration);
  void iterate(std::int64_t iteration);
  std::vector<Sample> rollout(const std::vector<Prompt>& prompts, const SamplingOptions& sampling,
                              int samples, PhaseTimer& timer);
  void score_by_reference(std::vector<Sample>& samples);
  double evaluate();
  void write_rollout_file(std::int64_t iteration, const std::vector<Sample>& samples);
  ScoreContext score_context(const ModelView& view);

  RunOptions options_;
  std::string config_text_;
  const Ranks& ranks_;
  ModelFiles files_;
  PromptSource prompts_;
  TrainingModel model_;
  std::unique_ptr<InferenceModel> reference_;
  EngineOptions engine_options_;
  TrainPassOptions pass_options_;
  MemoryPlan plan_;
  CheckpointStore checkpoints_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<PolicyTrainer> trainer_;
  std::unique_ptr<IterationLog> log_;
  double publish_seconds_ = 0.0;  // of the current iteration, on this rank
};

}  // namespace taper
