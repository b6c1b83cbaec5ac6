// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <vector>

#include "planner/Snapshot.hpp"
#include "planner/SwitchCost.hpp"

namespace taper {

// The ranks for which plans are priced, and the layouts on them.
class Cluster {
 public:
  // Refers to the step model. Uniform layouts are those of the degrees, which must be in the chain.
  Cluster(const DivisorChain& chain, const StepModel& steps, const std::vector<int>& degrees);
  Cluster(const Cluster&) = delete;  // a copy would point into this one
  Cluster& operator=(const Cluster&) = delete;

  const DivisorChain& chain() const { return chain_; }
  const std::vector<const LayoutShape*>& uniform() const { return uniform_; }  // by degree
  // Stable addresses: runs refer to shapes.
  const LayoutShape& shape(const Layout& layout);

 private:
  DivisorChain chain_;
  const StepModel* steps_;
  std::deque<LayoutShape> shapes_;
  std::vector<const LayoutShape*> uniform_;
};

// A generation ends with its longest sequences, and uniform layouts treat all blocks of ranks
// alike. So the blocks that are likely to last longest stand for very many ranks, as a small
// cluster that is priced in their place: `block` ranks each, a degree of the chain.
DivisorChain sample_chain(const DivisorChain& chain, int block, int blocks);
// The snapshot of that cluster: of a uniform layout of degrees up to `block`.
Snapshot sample_of(const Snapshot& snapshot, const DivisorChain& sample, int block);

}  // namespace taper
