// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "instance/InferenceModel.hpp"
#include "rl/SampleSet.hpp"
#include "session/RankBlocks.hpp"
#include "train/Policy.hpp"
#include "train/RunOptions.hpp"

namespace taper {

// The reference model of a training job, the policy as it was at the start. In the layout in which
// the policy learns it borrows the memory of its passes, unless it is offloaded: then it has
// passes, and weights, in memory of a phase of its own.
class Reference {
 public:
  // Whether it has passes of its own at this place.
  static bool has_own_passes(const RunOptions& options, const ModelPlace& place,
                             const Policy& policy);
  // Refers to all but the place. `phase`: of the memory for its own passes. Not collective.
  Reference(const RunOptions& options, const ModelFiles& files, const ModelPlace& place,
            Policy& policy, MemoryPhase phase);

  // What this rank will hold, if anything. Not collective.
  void add_memory(MemoryPlan& plan) const;
  // Allocates and loads that. Collective over the ranks of its place.
  void create(Arena& arena, ConstFloatMatrix rope_table);

  const ModelPlace& place() const { return place_; }
  // Sets ref_log_probs of those of samples.here() that have none, after bringing the samples to the
  // ranks that score them. Collective over the ranks of its place, which are those of the samples.
  void score(SampleSet& samples);
  // The same of samples that all ranks of a replica have. Collective over these.
  void score(std::vector<Sample>& samples);

 private:
  bool is_in_layout_of_policy() const { return place_.layout == policy_.place().layout; }
  void bring(SampleSet& samples);

  const RunOptions& options_;
  const ModelFiles& files_;
  ModelPlace place_;
  Policy& policy_;
  TrainPassOptions pass_options_;
  std::unique_ptr<InferenceModel> model_;  // on its ranks
  std::unique_ptr<TrainPass> pass_;        // unless it is the policy's
};

}  // namespace taper
