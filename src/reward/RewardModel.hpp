// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "instance/InferenceModel.hpp"
#include "model/ValuePass.hpp"
#include "reward/RewardOptions.hpp"
#include "rl/SampleSet.hpp"
#include "session/LayoutChecks.hpp"
#include "session/RankBlocks.hpp"

namespace taper {

// How the models among the rewards are run.
struct RewardModelSetup {
  WeightType type = WeightType::kBf16;
  int tp = 1;           // ranks per replica on all ranks, if the reward does not say
  int max_rows = 2048;  // tokens of a micro-batch, as many as a response with its prompt at least
  int max_positions = 1024;                  // of a prompt with its response
  MemoryPhase phase = MemoryPhase::kAlways;  // of the memory for scoring
};

// The tensor-parallel degrees that models among the rewards ask for: the ranks need groups of them.
NamedDegrees degrees_of_models(const std::vector<RewardOptions>& rewards);

// A reward that a model gives: the value of its scalar head at the last token of a response, which
// the model sees as the policy made it, token by token.
class RewardModel {
 public:
  // Reads configuration and tokenizer. Throws Error if there is no reward model, if it cannot
  // hold the positions, or if its tokenizer is not that of the policy. Collective over `ranks`, of
  // which some, or all, are its place.
  RewardModel(const RewardOptions& reward, const ModelFiles& policy, const Ranks& ranks,
              const ModelPlace& place, const RewardModelSetup& setup);

  // Throws Error if the weights are missing or others.
  void require_weights() const { (void)files_.open_weights(); }
  // What this rank will hold, if anything. Not collective.
  void add_memory(MemoryPlan& plan) const;
  // Allocates and loads that. Collective over the ranks of its place.
  void create(Arena& arena);

  // Sets a component of the rewards of those samples.here() that do not have it yet (NaN), the same
  // bits in any layout; it brings the samples to the ranks that judge them. Collective over the
  // ranks of its place, which are those of the samples.
  void score(SampleSet& samples, std::size_t component);
  // The same of samples that all ranks of a replica have. Collective over these.
  void score(std::vector<Sample>& samples, std::size_t component);
  const ModelPlace& place() const { return place_; }

 private:
  ModelFiles files_;
  ModelPlace place_;
  RewardModelSetup setup_;
  std::string name_;  // in the memory plan
  // On its ranks.
  std::unique_ptr<InferenceModel> model_;
  std::unique_ptr<ValuePass> pass_;
};

}  // namespace taper
