// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/PlayedGeneration.hpp"
#include "shard/RankGrid.hpp"

namespace taper {

// Finds the layout of buddy groups that ends soonest on average over some scenarios: for each node
// of the tree that the chain spans, either one group of all its ranks or the best of its parts.
// Groups are only merged. Takes one scenario at a time, so that the work can be spread out.
class MergeSearch {
 public:
  // From a layout to groups of the given degrees, ascending. Refers to the step model.
  MergeSearch(const Layout& from, const DivisorChain& chain, const StepModel& steps,
              const std::vector<int>& degrees, int slots_per_rank);

  // A scenario, played in the layout, at its start.
  void add(const PlayedGeneration& played);

  // Of the scenarios so far, one at least. None if the best is the layout itself or a uniform
  // one.
  std::optional<Layout> best() const;

 private:
  // A group that may be formed, or one of the layout, and when its sequences end, by scenario.
  struct Place {
    LayoutGroup group;
    std::vector<std::int64_t> ends;
  };
  std::int64_t end_of(const PlayedGeneration& played, const LayoutGroup& group) const;

  Layout from_;
  DivisorChain chain_;
  const StepModel* steps_;
  int slots_per_rank_;
  std::vector<Place> places_;  // those of the layout, then by ascending degree
};

}  // namespace taper
