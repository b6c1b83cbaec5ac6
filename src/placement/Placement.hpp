// SPDX-License-Identifier: Apache-2.0
//
// On which ranks the models of an RLHF run are. A pure function of options and ranks.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shard/ModelLayout.hpp"

namespace taper {

// Whether two models can work early (train/EarlyWork.hpp): on ranks that they share, replicas of
// the same ranks take turns.
inline bool can_take_turns(const ModelLayout& a, const ModelLayout& b) {
  return !a.ranks().overlaps(b.ranks()) || a.grid.tp == b.grid.tp;
}

// The published strategies (arXiv 2312.11819), and one of a file.
enum class PlacementStrategy {
  kFlattening,    // all models on all ranks
  kInterleaving,  // models that only score are dealt to blocks of ranks, where they run at the same
                  // time
  kSeparation,    // policy and critic learn on other ranks than those that generate and score
  kPlan,          // as a plan says, which has set the ranks of all models (train/PlacementFile.hpp)
};
std::vector<std::pair<std::string, PlacementStrategy>> named_placement_strategies();

struct PlacementOptions {
  PlacementStrategy strategy = PlacementStrategy::kFlattening;
  std::string file;  // of the plan
  // Ranks, as find_model_ranks() reads them; empty: by the strategy.
  std::string policy, generation, reference, critic;

  std::vector<std::string> problems() const;
};

// A model that only scores, with the option that places it.
struct ScoringModel {
  std::string name;    // "reference"
  std::string option;  // "Placement/Reference"
  std::string ranks;   // the value; empty: by the strategy
  int tp = 1;          // ranks per replica, unless `ranks` says more
};

// The models of a run.
struct ModelSet {
  int policy_tp = 1, generation_tp = 1, critic_tp = 1;
  bool has_critic = false;
  std::vector<ScoringModel> scoring;  // the reference, if there is one, comes first

  // "policy", "critic", those that only score.
  std::vector<std::string> names() const;
};

// Where they are.
struct Placement {
  ModelLayout policy;
  ModelLayout generation;  // the grid: of Rollout/Tensor Parallel, whatever layouts follow
  std::optional<ModelLayout> critic;
  std::vector<ModelLayout> scoring;  // as ModelSet::scoring

  // Whether all models are on all ranks.
  bool is_flat(int ranks) const;
  // Those that no model is on, ascending.
  std::vector<int> idle_ranks(int ranks) const;
  // The sizes of blocks, ascending, without that of all ranks.
  std::vector<int> block_sizes(int ranks) const;
};

// The sizes of blocks and the tensor-parallel degrees that options name, each with its option: the
// chain of the ranks must have them. Also the size of the blocks of a strategy, if all degrees go
// with it.
std::vector<std::pair<std::string, int>> named_degrees(const PlacementOptions& options,
                                                       const ModelSet& models, int ranks);

// The chain must have all tensor-parallel degrees too. Throws Error naming the option whose ranks
// cannot be, and why.
Placement place(const PlacementOptions& options, const ModelSet& models, const DivisorChain& chain);

// "policy on ranks 0-3 (TPxDP 2x2), reference on ranks 0-1 (TPxDP 1x2), ..."
std::string describe(const Placement& placement, const ModelSet& models);

}  // namespace taper
