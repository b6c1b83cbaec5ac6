// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/Timer.hpp"
#include "profile/ProfileSchedule.hpp"
#include "profile/SwitchProbe.hpp"

namespace taper {

struct ProfileOptions {
  StepProbeOptions probe;  // max_positions 0: the model's, at most 2048
  // Tensor-parallel; empty: all of the divisor chain that the model allows.
  std::vector<int> degrees;
  bool passes = false;  // of training, too, for taper plan
  double budget = 0;    // seconds of measuring; 0: by the speed of the model
  bool fresh = false;   // forget what the output or its side file hold
  std::string output = "profile.h5";

  std::vector<std::string> problems() const;
};

// Measures the latency profile of a model on the ranks of a run: steps of all degrees on a grid
// that grows where interpolation is worst, then more repeats, until the time is over or the errors
// are within the noise of the machine. Rank 0 decides and keeps the books; the others follow. What
// is measured is written beside the output every few seconds, so that the same job can be resumed.
class ProfileJob {
 public:
  // Refers to files and ranks. Throws Error for bad options, degrees, or an output (or its side
  // file) that belongs to something else. Collective over the world.
  ProfileJob(const ProfileOptions& options, ModelFiles& files, const Ranks& ranks);

  const MemoryPlan& memory_plan() const { return probe_->memory_plan(); }
  const std::vector<int>& degrees() const { return degrees_; }

  // Measures what is missing and writes the output. If the budget ends it before what was
  // planned is done, the side file stays, and the same job goes on from there. The profile is there
  // on rank 0 only. Collective over the world.
  LatencyProfile run();

 private:
  void restore();
  std::int64_t page_bytes() const;  // of one KV head of one layer
  // Costs of switching to each degree. Collective over the world.
  void measure_switches();
  // One visit; false if there is none left. `schedule` is null except on rank 0. Collective over
  // the world.
  bool visit_next(ProfileSchedule* schedule);
  void keep_books(const ProfileSchedule& schedule);
  // Measures passes into the profile of rank 0. Collective over the world.
  void add_passes(LatencyProfile& profile);
  std::vector<PairClass> pairs(int degree) const;  // of the degree's groups
  std::vector<ProfileSide> sides() const;
  Facts settings() const;
  LatencyProfile result(const ProfileSchedule& schedule) const;

  ProfileOptions options_;
  ModelFiles* files_;
  const Ranks* ranks_;
  std::vector<int> node_of_rank_;
  std::vector<int> degrees_;
  std::unique_ptr<StepProbe> probe_;
  ProfileRecord record_;  // books of rank 0
  std::vector<MeasuredSwitch> switches_;
  double meeting_ = 0;                      // seconds
  std::optional<LatencyProfile> complete_;  // found at the output, on rank 0
  Timer timer_;
  double before_ = 0;                // seconds spent by earlier starts
  double saved_ = 0, reported_ = 0;  // timer_ at the last side file and the last line
};

}  // namespace taper
