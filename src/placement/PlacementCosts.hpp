// SPDX-License-Identifier: Apache-2.0
//
// What an iteration costs in a placement: the calls of its models, priced, played in the order in
// which runs make them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "placement/Placement.hpp"
#include "shard/ModelLayout.hpp"

namespace taper {

// What a model does in an iteration.
enum class ModelRole {
  kGeneration,  // of the responses, by the policy
  kScoring,     // of all responses: a reward model, the reference
  kCritic,      // values of all responses, then its update
  kPolicy,      // its update
};
inline bool learns(ModelRole role) {
  return role == ModelRole::kPolicy || role == ModelRole::kCritic;
}

// One way to place a model, with the time of its calls and its memory there.
struct PlaceOption {
  ModelLayout layout;
  std::int64_t score_ns = 0;   // generation, scores or values
  std::int64_t update_ns = 0;  // of those that learn
  // On each of its ranks, at most: always, and while it works, which others use at other times.
  std::int64_t bytes = 0, work_bytes = 0;
  // Of a policy: what of it are forward weights. On its ranks the generation has only what it needs
  // beyond these, since shards nest.
  std::int64_t weight_bytes = 0;
};

struct PlaceableModel {
  std::string name;  // "reference"
  std::string key;   // of the run file that places it, "Placement/Reference"
  ModelRole role = ModelRole::kScoring;
  std::vector<PlaceOption> options;
  // Whether it works while others generate (train/EarlyWork.hpp).
  bool works_early = false;

  // The number of the option with a layout, if there is one.
  std::optional<int> find(const ModelLayout& layout) const;
};

// Where a model is in a placement of `models`, of which those that score have its key as option.
const ModelLayout& layout_of(const PlaceableModel& model, const Placement& placement,
                             const ModelSet& models);

// A placement: an option of each model.
using PlaceChoice = std::vector<int>;

// A call in a played iteration.
struct PlayedCall {
  std::string model;
  ModelLayout layout;
  std::int64_t begin_ns = 0, end_ns = 0;
};

// The prices of an iteration. Stages follow one another, each on all ranks: generation, scoring,
// updates, publishing (rl/ModelCalls.hpp). Within a stage a call begins when its ranks have made
// those before it.
struct PlacementCosts {
  int ranks = 1;
  std::int64_t memory = 0;  // bytes that a rank has; 0: not limited
  // In the order in which scores are made: reward models, the reference, the critic. One of them
  // generates, one is the policy.
  std::vector<PlaceableModel> models;
  // Of bringing the weights of the policy to ranks that generate and do not train it, or that
  // generate at a smaller degree than they train it at.
  std::function<std::int64_t(const ModelLayout& policy, const ModelLayout& generation)> publish_ns;
  // Of copying samples to blocks and bringing back what they found, in a stage that has blocks.
  std::int64_t exchange_ns = 0;

  // Of the model with a role that one model has.
  std::size_t index_of(ModelRole role) const;
  const PlaceOption& option(const PlaceChoice& choice, std::size_t model) const {
    return models[model].options[static_cast<std::size_t>(choice[model])];
  }
  // The time of an iteration; `calls`, if it is not null, gets what it consists of.
  std::int64_t iteration_ns(const PlaceChoice& choice,
                            std::vector<PlayedCall>* calls = nullptr) const;
  // Whether models that work early and share ranks have the same degree, as they must.
  bool is_possible(const PlaceChoice& choice) const;
  // Of publishing, as publish_ns has it.
  std::int64_t published_ns(const PlaceChoice& choice) const;
  // Of the rank that needs most.
  std::int64_t rank_bytes(const PlaceChoice& choice) const;
  // The number of all placements, at most `limit`.
  std::int64_t placements(std::int64_t limit) const;
};

// The layouts that a model of these tensor-parallel degrees can have on blocks of the chain's
// ranks: large blocks first.
std::vector<ModelLayout> possible_layouts(const DivisorChain& chain,
                                          const std::vector<int>& degrees);

}  // namespace taper
