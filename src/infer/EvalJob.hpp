// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "data/PromptSource.hpp"
#include "infer/GenerateJob.hpp"
#include "reward/EvalStatistics.hpp"
#include "reward/Judge.hpp"

namespace taper {

struct EvalResult {
  int samples = 1;  // responses per prompt
  std::map<std::string, EvalScores>
      groups;              // by task or data source; "all" where there is more than one. Of the
                           // responses that no reward dropped and the prompts that have some
  MetricValues rewards;    // of several, or of a command: "reward/<name>/mean" and so on
  double mean_length = 0;  // tokens per response, of all
  int truncated = 0;       // responses that reached the length limit, of all
};

// Responses to held-out prompts, judged.
class EvalJob {
 public:
  // Every rank gives the same prompts. Responses that score above 0.5 count as right. The job
  // refers to all arguments but options and rewards. Throws Error where the model has no tokenizer,
  // or the program of a command or a reward model is not there. Collective over the world.
  EvalJob(const GenerateOptions& options, const std::vector<RewardOptions>& rewards,
          ModelFiles& files, const std::vector<Prompt>& prompts, const Ranks& ranks,
          Spawner* spawner, const std::string& log_directory);

  const MemoryPlan& memory_plan() const { return generation_.memory_plan(); }

  // What models among the rewards will hold, when the responses are there.
  const MemoryPlan& judge_memory_plan() const { return judge_plan_; }

  // The same on every rank. Collective over the world.
  EvalResult run();

 private:
  SampleSet judge(SampleSet samples);

  const ModelFiles& files_;
  const std::vector<Prompt>& prompts_;
  std::vector<std::vector<std::int32_t>> tokens_;
  const Ranks& ranks_;
  int samples_;
  GenerateJob generation_;
  MemoryPlan judge_plan_;
  Judge judge_;
};

// A table for people, and JSON for scripts.
std::string to_table(const EvalResult& result);
std::string to_json(const EvalResult& result);

}  // namespace taper
