// SPDX-License-Identifier: Apache-2.0
//
// Step times of a described machine, and the latency profile that they make: from there on a
// described machine is a machine like any other.
#pragma once

#include <vector>

#include "planner/LatencyProfile.hpp"
#include "simulate/MachineDescription.hpp"

namespace taper {

// One engine step of a replica, as in StepSample.
struct StepWork {
  int new_tokens = 1;  // guesses included
  int sequences = 1;
  double context = 1;  // summed over the sequences
  int drafted = 0;     // guesses
};

// Nanoseconds of an all-reduce of so many bytes in a group of consecutive ranks. Beyond a node:
// reduce-scatter inside, each rank its part between the nodes, all-gather inside.
double all_reduce_ns(const MachineDescription& machine, int ranks, double bytes);

// Nanoseconds of a step of a group of `tp` ranks: the slower of streaming the weights and of the
// products, attention likewise, sampling, two all-reduces per layer, and the overheads. Shards are
// those of the rank that has most.
double step_ns(const MachineDescription& machine, const ModelDescription& model, int tp,
               const StepWork& work);

// Nanoseconds of a pass (kForward, kLearn) of a group of `tp` ranks over `rows` tokens in sequences
// of `length`, log-probs of `targets` of them included. A backward pass has twice the operations of
// a forward pass, and as many all-reduces.
double pass_ns(const MachineDescription& machine, const ModelDescription& model, int tp,
               const PassSample& work);

// Nanoseconds of an optimizer step of `replicas` groups of consecutive ranks: exact sums of the
// gradients (8 bytes per parameter) to their owners, AdamW, and publishing f32 masters.
double update_ns(const MachineDescription& machine, const ModelDescription& model, int tp,
                 int replicas);

// What is known of switching on a described machine beside moving KV.
struct SwitchDescription {
  double meeting_ms = 1;  // beside its exchanges
  double graphs_ms = 0;   // captured once per degree and batch, then kept
};

// How far the samples of a profile reach.
struct ProfileReach {
  int sequences = 1024;
  int context = 16384;  // of a sequence, positions
};

// Degrees into which the ranks and the KV heads of the model can be cut, as far as weights fit in
// memory; ascending.
std::vector<int> possible_degrees(const MachineDescription& machine, const ModelDescription& model);

// Bytes that a rank's KV cache has at a degree.
double kv_pool_bytes(const MachineDescription& machine, const ModelDescription& model, int tp);

// The profile that measuring such a machine would give: step times of each degree up to the reach,
// passes of training, and the costs of switching.
LatencyProfile describe_profile(const MachineDescription& machine, const ModelDescription& model,
                                const SwitchDescription& switching, const std::vector<int>& degrees,
                                const ProfileReach& reach);

}  // namespace taper
