// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/Options.hpp"
#include "driver/TrainingModel.hpp"
#include "text/Tasks.hpp"

namespace taper {

// Supervised fine-tuning on in-tree examples: token-mean cross entropy of response tokens.
class SftJob {
 public:
  // Reads the model's configuration and tokenizer. Throws Error where one is missing or names no
  // end of sequence. Not collective.
  SftJob(const SftOptions& options, const Ranks& ranks);

  // What each rank will hold.
  const MemoryPlan& memory_plan() const { return plan_; }

  // All that can be known before anything is allocated or written: whether the weights to start
  // from are there and are this model's, and whether the memory plans fit their hosts. Throws
  // Error. Collective over the world.
  void examine() const;

  // Examines, allocates, loads or draws the weights, trains and saves the model. Collective over
  // the world.
  void run();

 private:
  struct Example {
    std::vector<std::int32_t> prompt, response;
    int length() const { return static_cast<int>(prompt.size() + response.size()); }
  };
  // The examples of one optimizer step: as many from `next` on as fit the token budget.
  std::vector<Example> next_batch(std::uint64_t& next) const;
  double step(const std::vector<Example>& batch, double& grad_norm);
  void start_from_random();

  SftOptions options_;
  const Ranks& ranks_;
  ModelFiles files_;
  TrainPassOptions pass_options_;
  TrainingModel model_;
  TaskMix mix_;
  MemoryPlan plan_;
};

}  // namespace taper
