// SPDX-License-Identifier: Apache-2.0
//
// What the calls of an iteration take, for a model of the shape of a profile.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "model/TrainPass.hpp"
#include "planner/PassModel.hpp"
#include "planner/Replay.hpp"
#include "rl/MicroBatch.hpp"
#include "shard/ModelLayout.hpp"
#include "simulate/Simulator.hpp"

namespace taper {

// How the calls of an iteration are made.
struct CallSetting {
  TrainPassOptions pass;           // micro-batches and bundles
  bool may_change_layout = false;  // of the generation
  std::uint64_t seed = 0;          // of its planner
  int max_running = 0;             // sequences in flight in a replica; 0: as many as traces say
};

// Optimizer steps of an iteration.
struct UpdateSteps {
  int mini_batches = 1, epochs = 1;
};

// What the calls of an iteration take for a model of the shape of a profile, on any layout: samples
// are dealt to replicas and cut into micro-batches by the code that runs do it with, and the
// replica that takes longest counts. Times in nanoseconds.
class CallPrices {
 public:
  // The samples are those of the last trace, the samples of a prompt one after the other. Throws
  // Error if the profile has no passes.
  CallPrices(const LatencyProfile& profile, std::vector<ReplayTrace> traces,
             const CallSetting& setting);

  const LatencyProfile& profile() const { return machine_.profile; }
  // Tensor-parallel degrees of passes.
  const std::vector<int>& degrees() const { return passes_.degrees(); }
  // Of all samples, prompts counted for each.
  std::int64_t tokens() const;

  // A reward model reads whole samples.
  std::int64_t reward_ns(const ModelLayout& layout) const;
  enum class LearnsFrom { kLogProbs, kValues };
  // Log-probs of all responses, dealt as the policy learns from them.
  std::int64_t reference_ns(const ModelLayout& layout, const UpdateSteps& steps) const {
    return forward_ns(layout, steps, LearnsFrom::kLogProbs);
  }
  // Values of all responses, where the critic will train them.
  std::int64_t values_ns(const ModelLayout& layout, const UpdateSteps& steps) const {
    return forward_ns(layout, steps, LearnsFrom::kValues);
  }
  // Learning from all samples: the policy by log-probs, the critic by values.
  std::int64_t update_ns(const ModelLayout& layout, const UpdateSteps& steps,
                         LearnsFrom from) const;
  // The generation, in replicas of the grid or, if layouts may change, of its degree and larger
  // ones, as a planner plays it that has learned from the traces before. The chain is that of all
  // ranks.
  std::int64_t generation_ns(const RankGrid& grid, const DivisorChain& chain) const;

 private:
  using Batches = std::vector<std::vector<int>>;

  std::int64_t forward_ns(const ModelLayout& layout, const UpdateSteps& steps,
                          LearnsFrom from) const;
  int length(int sample) const;
  PassWork whole(const std::vector<int>& members) const;
  PassWork inputs(const std::vector<int>& members, bool with_targets) const;
  SequenceSizes sizes(Range range) const;
  std::vector<Range> mini_batches(const UpdateSteps& steps) const;
  std::vector<int> dealt(int replicas, const UpdateSteps& steps) const;
  std::vector<int> shared_out(int replicas) const;
  std::vector<Batches> large_batches(const std::vector<int>& replica_of, int replicas,
                                     int last_tokens) const;
  std::vector<Batches> bundles(Range range, const std::vector<int>& replica_of, int replicas) const;
  template <class Work>
  std::int64_t slowest(PassKind kind, const ModelLayout& layout,
                       const std::vector<Batches>& replicas, const Work& work) const;
  // What was computed before for a layout with the same grid and links.
  template <class Price>
  std::int64_t once(const char* call, int variant, const ModelLayout& layout,
                    const Price& price) const;

  SimulatedMachine machine_;
  PassModel passes_;
  std::vector<ReplayTrace> traces_;
  CallSetting setting_;
  int samples_;  // of a prompt
  // By call and its variant, degree, replicas, links.
  mutable std::map<std::tuple<std::string, int, int, int, PairClass, PairClass>, std::int64_t>
      known_;
};

}  // namespace taper
