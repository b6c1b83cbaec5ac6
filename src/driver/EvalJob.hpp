// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "driver/EvalStatistics.hpp"
#include "driver/GenerateJob.hpp"
#include "driver/PromptSource.hpp"

namespace taper {

struct EvalResult {
  std::map<std::string, EvalScores>
      groups;              // by task or data source; "all" where there is more than one
  double mean_length = 0;  // tokens per response
  int truncated = 0;       // responses that reached the length limit
};

// Responses to held-out prompts, judged.
class EvalJob {
 public:
  // Every rank gives the same prompts. The job refers to all arguments. Throws Error where the
  // model has no tokenizer. Collective over the world.
  EvalJob(const GenerateOptions& options, RewardRule rule, ModelFiles& files,
          const std::vector<Prompt>& prompts, const Ranks& ranks);

  const MemoryPlan& memory_plan() const { return generation_.memory_plan(); }

  // The same on every rank. Collective over the world.
  EvalResult run();

 private:
  RewardRule rule_;
  const ModelFiles& files_;
  const std::vector<Prompt>& prompts_;
  std::vector<std::vector<std::int32_t>> tokens_;
  GenerateJob generation_;
};

// A table for people, and JSON for scripts.
std::string to_table(const EvalResult& result);
std::string to_json(const EvalResult& result);

}  // namespace taper
