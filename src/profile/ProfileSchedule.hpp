// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profile/ProfileRecord.hpp"

namespace taper {

// What can be measured of one tensor-parallel degree.
struct ProfileSide {
  int degree = 1;
  std::vector<PairClass> classes;  // of its groups, each once
  GridLimits limits;
};

// One measurement: `steps` timed steps after `warm_up` others.
struct ProfileVisit {
  int degree = 1;
  StepShape shape;
  int warm_up = 1;
  int steps = 1;
};

// Decides what to measure next, from nothing but what has been measured: the coarse grid of all
// degrees in turn, a few visits of each point; then new points around the one that interpolation
// misses most, while it misses it by more than the machine's own noise; then visits of all points
// in turn. Points are added when all have been visited equally often. Short of time for all that,
// all points get as many visits as there is time for.
class ProfileSchedule {
 public:
  static constexpr int kLeastVisits = 2;  // whatever the budget: fewer tell nothing of noise
  static constexpr int kFirstVisits = 3;  // before a point counts in refinements
  static constexpr int kFullVisits = 9;   // enough
  static constexpr int kMostPoints = 96;  // of a degree and class

  ProfileSchedule(std::vector<ProfileSide> sides, ProfileRecord& record);

  // Nothing if the profile is complete. Adds points to the record.
  std::optional<ProfileVisit> next();
  // Adds a visit: the times of the replicas whose group is of the class.
  void add(const ProfileVisit& visit, PairClass pair, const std::vector<std::int64_t>& ns);

  // Errors of interpolation of a degree and class (interpolation_errors), and the machine's repeat
  // noise at its points (split-half), by quantile in millionths.
  FitError fit_error(int degree, PairClass pair) const;
  FitError repeat_noise(int degree, PairClass pair) const;
  // One sample for each point without guesses, or with them, in a fixed order.
  std::vector<StepSample> samples() const { return samples(Guesses::kNo); }
  std::vector<StepSample> verify_samples() const { return samples(Guesses::kYes); }

  int visits() const { return visits_; }  // least over the points
  // Share of the planned measuring that is done, by time: 100 if a start without a budget would
  // measure no more, else 1 to 99.
  int measured_percent() const;
  const std::vector<ProfileSide>& sides() const { return sides_; }

 private:
  enum class Guesses { kNo, kYes };

  void begin();
  void add_point(const ProfileSide& side, const StepShape& shape);
  bool add_refinements();
  bool has_time(double share) const;
  bool has_nothing_left() const;  // that a start without a budget would measure
  std::vector<StepSample> samples(Guesses guesses) const;
  std::vector<StepSample> samples(int degree, PairClass pair) const;
  ProfileVisit visit_of(const ProfilePoint& point) const;
  const ProfilePoint& least_visited() const;

  std::vector<ProfileSide> sides_;
  ProfileRecord* record_;
  int visits_ = 0;
};

// The budget if none is given: enough for small models in well under a minute, a few minutes for
// large ones. `first_round`: seconds that one visit of every point took.
double default_budget(double first_round);

}  // namespace taper
