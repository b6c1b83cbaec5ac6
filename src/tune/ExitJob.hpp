// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/PromptEncoder.hpp"
#include "instance/ExitFiles.hpp"
#include "instance/InferenceModel.hpp"
#include "instance/TrainedExits.hpp"

namespace taper {

struct ExitOptions {
  std::vector<int> layers;   // before each exit, ascending
  int vocabulary = 2048;     // ids that the heads know: those most frequent in the responses
  int passes = 1;            // over the responses
  double rate = 1e-3;        // learning rate
  float temperature = 1.0f;  // that the responses were drawn at
  WeightType type = WeightType::kBf16;
  int tp = 1;
  int max_tokens = 2048;  // per micro-batch; longer sequences stand alone
};

// Makes early exits of a model and trains them on responses that it gave.
class ExitJob {
 public:
  // Every rank gives the same responses. Not collective. Throws Error if there may be no such
  // exits.
  ExitJob(const ExitOptions& options, ModelFiles& files, const ScoreInput& responses,
          const std::filesystem::path& output, const Ranks& ranks);

  // Learns, and writes the exits: a directory that is there is replaced only when they are whole.
  // Returns the mean loss of the last quarter of the rounds, in nat per token. Throws Error if
  // there is nothing to learn from. Collective over the world.
  double run();

 private:
  std::size_t prompt_length(std::size_t sequence) const;
  // The ids most frequent in the responses, ascending.
  std::vector<std::int32_t> frequent_ids() const;
  double learn(const PassContext& pass, TrainedExits& exits);

  ExitOptions options_;
  ModelFiles& files_;
  const ScoreInput& responses_;
  std::filesystem::path output_;
  const Ranks& ranks_;
  InferenceModel model_;
};

}  // namespace taper
