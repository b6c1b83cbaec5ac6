// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/PromptSource.hpp"
#include "reward/Judge.hpp"
#include "rl/Batch.hpp"
#include "rollout/Generator.hpp"
#include "rollout/PinnedLengths.hpp"
#include "run/PhaseTimer.hpp"
#include "session/StopRequest.hpp"
#include "train/Journal.hpp"
#include "train/RunOptions.hpp"

namespace taper {

// The rollouts of a training run: prompts are drawn, responses generated and judged, in as many
// rounds as an iteration takes.
class Rollouts {
 public:
  // Reads the prompts. Refers to files, generator and judge. Throws Error naming the key, or file
  // and line, of what is wrong. Collective over the world.
  Rollouts(const RunOptions& options, const ModelFiles& files, const Ranks& ranks,
           Generator& generator, Judge& judge);

  // The responses of an iteration, with rewards; nothing if a stop was agreed on meanwhile.
  // first_batch: of prompts, Rollout/Prompts each, drawn before. The generator's planner has
  // learned from them. Phases gen and reward. Collective over the world.
  std::optional<Batch> collect(std::int64_t iteration, std::int64_t first_batch,
                               StopAgreement& stop, PhaseTimer& timer);

  // The iteration of the last collect() is not finished, but will be by another job: keeps what it
  // has generated. Collective over the world.
  void put_off(std::int64_t iteration) const { journal_.write(iteration, made_); }
  // It is finished, and never comes again.
  void forget(std::int64_t iteration) const { journal_.remove(iteration); }

  // Of the last collect(): each generation, and sequences preempted.
  const std::vector<GenerationReport>& generations() const { return generations_; }
  std::int64_t preemptions() const { return generator_.preemptions() - preempted_before_; }

  SamplingOptions sampling(std::int64_t iteration) const;
  const PromptSource& prompts() const { return prompts_; }

 private:
  std::optional<SampleSet> round(const std::vector<Prompt>& prompts, std::int64_t first_prompt,
                                 const SamplingOptions& sampling, StopAgreement& stop,
                                 PhaseTimer& timer);

  RolloutOptions options_;
  DynamicSamplingOptions dynamic_;
  std::uint64_t seed_;
  Generator& generator_;
  Judge& judge_;
  PromptSource prompts_;
  PinnedLengths lengths_;
  StopOptions stops_;
  Journal journal_;
  std::vector<RolloutRecord> made_;  // here, by the last collect(), if there is a journal
  std::vector<GenerationReport> generations_;
  std::int64_t preempted_before_ = 0;
};

}  // namespace taper
