// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "rl/MicroBatch.hpp"
#include "rl/UpdateLoop.hpp"
#include "shard/ModelLayout.hpp"

namespace taper {

// How fast ranks compute, by what they have trained in the iterations so far and the time that they
// worked at it. It decides who trains what, which changes no bit; so it may know clocks. Pure; all
// ranks note the same.
class RankSpeeds {
 public:
  RankSpeeds(int ranks, double margin);

  // The work of an iteration by ranks. Of times that make no sense nothing is learned; a rank that
  // had work before and has none now is taken to be nearer to the median than it was.
  void note(std::span<const TrainedWork> work);

  // Rows per second against the median of all ranks (of two ranks the faster one), in 1/kSpeedOne;
  // kSpeedOne within the margin, and if nothing is known. Earlier iterations fade with a half-life
  // of three.
  int of_rank(int rank) const;
  // The slowest rank of each replica, by which the others wait. Empty if all are equally fast.
  ReplicaSpeeds of_replicas(const ModelLayout& layout) const;
  // Ranks that are slower than the margin allows, ascending.
  std::vector<int> slow_ranks() const;

 private:
  double margin_;
  std::vector<double> seconds_per_row_;  // by rank; 0: unknown
  double median_ = 0.0;                  // of those that are known
};

}  // namespace taper
