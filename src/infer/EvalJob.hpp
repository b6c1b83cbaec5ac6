// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "data/PromptSource.hpp"
#include "evaluate/Evaluator.hpp"
#include "infer/LoadedGenerator.hpp"
#include "reward/Judge.hpp"

namespace taper {

struct EvalResult : SetFigures {
  MetricValues rewards;  // of several, or of a command: "reward/<name>/mean" and so on
};

// Responses to held-out prompts, judged: commands among the rewards are asked while others are
// generated, models when all responses are there.
class EvalJob {
 public:
  // Every rank gives the same prompts. Responses that score above 0.5 count as right. The job
  // refers to files, ranks and spawner. Throws Error if the model has no tokenizer, or the
  // program of a command or a reward model is not there. Collective over the world.
  EvalJob(const GenerateOptions& options, const std::vector<RewardOptions>& rewards,
          ModelFiles& files, std::vector<Prompt> prompts, const Ranks& ranks, Spawner* spawner,
          const std::string& log_directory);

  const MemoryPlan& memory_plan() const { return model_.memory_plan(); }
  // Of the generation.
  const GenerationReport& report() const { return model_.report(); }

  // What models among the rewards will hold, when the responses are there.
  const MemoryPlan& judge_memory_plan() const { return judge_plan_; }

  // The same on every rank. Collective over the world.
  EvalResult run();

 private:
  const Ranks& ranks_;
  EvaluationSet set_;
  LoadedGenerator model_;
  MemoryPlan judge_plan_;
  Judge judge_;
  Evaluator evaluator_;
};

// A table for people, and JSON for scripts.
std::string to_table(const EvalResult& result);
std::string to_json(const EvalResult& result);

}  // namespace taper
