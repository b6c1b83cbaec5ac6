// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/Timer.hpp"
#include "comm/Group.hpp"
#include "comm/Progress.hpp"
#include "results/RunFile.hpp"

namespace taper {

// Seconds per phase of one iteration on this rank; names as in verl ("gen", "update_actor", ...).
class PhaseTimer {
 public:
  explicit PhaseTimer(Progress& progress) : progress_(&progress) {}

  // Ends the phase before and starts one; name is a string literal. A phase that comes again counts
  // on.
  void start(const char* phase);
  void stop();
  // A phase that other ranks have, and this one perhaps not: it gets a time, if only 0.
  void expect(const char* phase);
  const std::vector<std::pair<std::string, double>>& seconds() const { return seconds_; }
  double total() const;

 private:
  double& of(const char* phase);

  Progress* progress_;
  Timer timer_;
  const char* phase_ = nullptr;
  std::vector<std::pair<std::string, double>> seconds_;
};

// Minimum, mean and maximum over ranks of each phase. All ranks timed the same phases. Collective
// over `group`.
std::vector<PhaseTiming> reduce_timing(const Group& group, const PhaseTimer& timer);

}  // namespace taper
