// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "instance/InferenceModel.hpp"
#include "rollout/Generator.hpp"

namespace taper {

// What a command says of its responses; the longest prompt is taken as it is.
struct GenerateOptions : GeneratorOptions {
  WeightType type = WeightType::kBf16;

  GenerateOptions() {
    kv_memory_mb = 4096.0;
    names = {"--layout",      "--kv-memory-mb",    "--mode",       "--profile", "--speculation",
             "--draft-model", "--draft-placement", "--early-exits"};
  }
};

struct PromptSizes {
  int count = 0;
  int longest = 1;  // tokens
};

// The model of a command with its generator, which hold memory only while responses are generated.
class LoadedGenerator {
 public:
  // All prompts are within the model's context. Refers to files and ranks. Collective over the
  // world.
  LoadedGenerator(const GenerateOptions& options, ModelFiles& files, const PromptSizes& prompts,
                  const Ranks& ranks);

  const MemoryPlan& memory_plan() const { return plan_; }
  // Of a prompt with its response, at most.
  int max_positions() const { return generator_.max_positions(); }

  // Loads the model, lets `generate` use the generator, and frees the memory, once. Collective over
  // the world, on all ranks of which `generate` does the same.
  void use(const std::function<void(Generator&)>& generate);
  // Of the last generation.
  const GenerationReport& report() const { return generator_.report(); }

 private:
  WeightType type_;
  ModelFiles& files_;
  const Ranks& ranks_;
  MemoryPlan plan_;
  Generator generator_;
  InferenceModel model_;
};

}  // namespace taper
