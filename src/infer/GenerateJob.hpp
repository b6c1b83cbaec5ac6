// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "infer/LoadedGenerator.hpp"
#include "rl/SampleSet.hpp"

namespace taper {

// Responses of a model to prompts given as token ids. The tokens do not depend on layout or ranks.
class GenerateJob {
 public:
  // Every rank gives the same prompts, within the model's ids and context. The job refers to all
  // arguments. Collective over the world.
  GenerateJob(const GenerateOptions& options, ModelFiles& files,
              const std::vector<std::vector<std::int32_t>>& prompts, const Ranks& ranks);

  const MemoryPlan& memory_plan() const { return model_.memory_plan(); }

  // The responses, on the ranks where they ended. Collective over the world.
  SampleSet run();
  // Of the generation alone, without loading.
  double seconds() const { return seconds_; }
  const GenerationReport& report() const { return model_.report(); }

 private:
  std::vector<Request> requests() const;

  GenerateOptions options_;
  ModelFiles& files_;
  const std::vector<std::vector<std::int32_t>>& prompts_;
  const Ranks& ranks_;
  LoadedGenerator model_;
  double seconds_ = 0;
};

// One line of output, which `taper score` takes as it is: {"index", "sample", "prompt_tokens",
// "tokens", "log_probs", "text", "finish"}; text is null without a tokenizer, and control
// characters in it are escapes, so that a terminal does not obey them.
std::string response_line(const Sample& sample, const ModelFiles& files);

// All of them in the order of prompt and sample, a line each, into a file that appears whole or not
// at all. Rank 0 writes what one rank after the other has, so that it never holds all. Collective
// over the world.
void write_responses(const std::string& path, SampleSet& samples, const ModelFiles& files,
                     const Group& world);

}  // namespace taper
