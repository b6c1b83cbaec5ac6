// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "instance/InferenceModel.hpp"
#include "model/TrainPass.hpp"

namespace taper {

struct ScoreOptions {
  WeightType type = WeightType::kF32;
  int tp = 1;
  int max_tokens = 2048;  // per micro-batch; longer sequences stand alone
};

// Teacher-forced log-probs of given token sequences at temperature 1.
class ScoreJob {
 public:
  // Every rank gives the same sequences of at least one token, within the model's ids and context.
  // Not collective.
  ScoreJob(const ScoreOptions& options, ModelFiles& files,
           const std::vector<std::vector<std::int32_t>>& sequences, const Ranks& ranks);

  const MemoryPlan& memory_plan() const { return plan_; }

  // For each sequence the log-probs of all tokens but the first, on every rank. Collective over the
  // world.
  std::vector<std::vector<float>> run();

 private:
  ScoreOptions options_;
  ModelFiles& files_;
  const std::vector<std::vector<std::int32_t>>& sequences_;
  const Ranks& ranks_;
  int longest_ = 0;
  InferenceModel model_;
  TrainPassOptions pass_;
  MemoryPlan plan_;
};

// {"log_probs": [...]} from the log-probs of all tokens but the first: those of the tokens after
// the prompt, or all of them after a null for the first token if there is no prompt (length 0).
// Digits enough to give the same f32 back. Throws Error if one is not finite.
std::string score_line(const std::vector<float>& log_probs, int prompt_length);

}  // namespace taper
