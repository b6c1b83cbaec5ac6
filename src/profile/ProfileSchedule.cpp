// SPDX-License-Identifier: Apache-2.0
#include "profile/ProfileSchedule.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/Error.hpp"

namespace taper {
namespace {

constexpr double kShareForRefining = 0.6;  // of the budget; the rest is for repeats
constexpr double kGoodEnough = 0.005;      // no model of step times needs to be better
constexpr double kVisitSeconds = 0.03;     // of timed steps in a row, if they are short
constexpr int kLeastSteps = 2, kMostSteps = 12;
constexpr double kLeastBudget = 45, kMostBudget = 300;  // seconds

bool same_place(const ProfilePoint& p, int degree, const StepShape& shape) {
  return p.tp == degree && p.shape == shape;
}

FitError quantiles(int degree, PairClass pair, const std::vector<double>& errors) {
  const auto millionths = [&](double p) { return std::llround(quantile(errors, p) * 1e6); };
  return {degree, pair, millionths(0.5), millionths(0.9), millionths(0.95), millionths(1.0)};
}

}  // namespace

double default_budget(double first_round) {
  return std::clamp(6 * first_round, kLeastBudget, kMostBudget);
}

ProfileSchedule::ProfileSchedule(std::vector<ProfileSide> sides, ProfileRecord& record)
    : sides_(std::move(sides)), record_(&record) {
  if (record_->points.empty()) begin();
}

// The coarse grids, degrees in turn, so that points visited one after another differ in degree.
void ProfileSchedule::begin() {
  std::vector<std::vector<StepShape>> grids;
  std::size_t longest = 0;
  for (const ProfileSide& side : sides_) {
    grids.push_back(coarse_grid(side.limits));
    longest = std::max(longest, grids.back().size());
  }
  for (std::size_t i = 0; i < longest; ++i)
    for (std::size_t s = 0; s < sides_.size(); ++s)
      if (i < grids[s].size()) add_point(sides_[s], grids[s][i]);
}

void ProfileSchedule::add_point(const ProfileSide& side, const StepShape& shape) {
  for (const PairClass pair : side.classes) {
    const auto here = [&](const ProfilePoint& p) {
      return p.pair == pair && same_place(p, side.degree, shape);
    };
    if (std::none_of(record_->points.begin(), record_->points.end(), here))
      record_->points.push_back({side.degree, pair, shape, {}});
  }
}

const ProfilePoint& ProfileSchedule::least_visited() const {
  return *std::min_element(
      record_->points.begin(), record_->points.end(),
      [](const auto& a, const auto& b) { return a.visits.size() < b.visits.size(); });
}

bool ProfileSchedule::has_time(double share) const {
  return record_->budget == 0 || record_->seconds_spent < share * record_->budget;
}

std::optional<ProfileVisit> ProfileSchedule::next() {
  visits_ = static_cast<int>(least_visited().visits.size());
  if (visits_ >= 1 && record_->first_round == 0) record_->first_round = record_->seconds_spent;
  if (record_->first_round > 0 && record_->budget == 0)
    record_->budget = default_budget(record_->first_round);
  const bool even = std::all_of(
      record_->points.begin(), record_->points.end(),
      [&](const ProfilePoint& p) { return static_cast<int>(p.visits.size()) == visits_; });
  if (even && visits_ >= kFirstVisits && has_time(kShareForRefining) && add_refinements())
    visits_ = 0;
  const bool wanted = visits_ < kLeastVisits || (visits_ < kFullVisits && has_time(1.0));
  if (!wanted) return std::nullopt;
  return visit_of(least_visited());
}

bool ProfileSchedule::has_nothing_left() const {
  ProfileRecord copy = *record_;
  copy.budget = 0;
  return !ProfileSchedule(sides_, copy).next();
}

int ProfileSchedule::measured_percent() const {
  if (has_nothing_left()) return 100;
  const double share = record_->seconds_spent / default_budget(record_->first_round);
  return std::clamp(static_cast<int>(100 * share), 1, 99);
}

// Many steps in a row if they are short, so that a visit is not all start and end.
ProfileVisit ProfileSchedule::visit_of(const ProfilePoint& point) const {
  ProfileVisit visit{point.tp, point.shape, 2, 3};
  if (point.visits.empty()) return visit;
  const double seconds = static_cast<double>(summarize(point).time_ns) * 1e-9;
  visit.warm_up = 1;
  visit.steps = static_cast<int>(
      std::clamp(kVisitSeconds / seconds, double{kLeastSteps}, double{kMostSteps}));
  return visit;
}

void ProfileSchedule::add(const ProfileVisit& visit, PairClass pair,
                          const std::vector<std::int64_t>& ns) {
  const auto at = std::find_if(record_->points.begin(), record_->points.end(), [&](const auto& p) {
    return p.pair == pair && same_place(p, visit.degree, visit.shape);
  });
  TAPER_EXPECT(at != record_->points.end() && !ns.empty());
  at->visits.push_back(ns);
}

std::vector<StepSample> ProfileSchedule::samples(int degree, PairClass pair) const {
  std::vector<StepSample> list;
  for (const ProfilePoint& p : record_->points)
    if (p.tp == degree && p.pair == pair && !p.shape.verifies() && !p.visits.empty())
      list.push_back(summarize(p));
  return list;
}

std::vector<StepSample> ProfileSchedule::samples(Guesses guesses) const {
  std::vector<StepSample> list;
  for (const ProfilePoint& p : record_->points)
    if (p.shape.verifies() == (guesses == Guesses::kYes) && !p.visits.empty())
      list.push_back(summarize(p));
  std::sort(list.begin(), list.end(), [](const StepSample& a, const StepSample& b) {
    const auto key = [](const StepSample& s) {
      return std::tuple(s.tp, s.pair, s.new_tokens - s.sequences, s.sequences, s.context);
    };
    return key(a) < key(b);
  });
  return list;
}

FitError ProfileSchedule::fit_error(int degree, PairClass pair) const {
  std::vector<double> errors;
  for (const PointError& e : interpolation_errors(samples(degree, pair))) errors.push_back(e.error);
  return quantiles(degree, pair, errors);
}

FitError ProfileSchedule::repeat_noise(int degree, PairClass pair) const {
  std::vector<double> noise;
  for (const ProfilePoint& p : record_->points)
    if (p.tp == degree && p.pair == pair)
      if (const auto n = taper::repeat_noise(p)) noise.push_back(*n);
  return quantiles(degree, pair, noise);
}

// Adds points that reduce the worst error of each degree and class; false if none needs any.
bool ProfileSchedule::add_refinements() {
  const std::size_t before = record_->points.size();
  for (const ProfileSide& side : sides_)
    for (const PairClass pair : side.classes) {
      const auto known = samples(side.degree, pair);
      if (static_cast<int>(known.size()) >= kMostPoints) continue;
      auto errors = interpolation_errors(known);
      std::sort(errors.begin(), errors.end(),
                [](const PointError& a, const PointError& b) { return a.error > b.error; });
      const double bar =
          std::max(kGoodEnough, static_cast<double>(repeat_noise(side.degree, pair).p90) * 1e-6);
      const std::size_t here = record_->points.size();
      for (const PointError& e : errors) {
        if (e.error <= bar || record_->points.size() > here) break;
        for (const StepShape& shape : refine(known, e, side.limits)) add_point(side, shape);
      }
    }
  return record_->points.size() > before;
}

}  // namespace taper
