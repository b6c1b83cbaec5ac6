// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "planner/LatencyProfile.hpp"
#include "profile/StepProbe.hpp"

namespace taper {

// One point of the profile with everything measured there so far.
struct ProfilePoint {
  int tp = 1;
  PairClass pair = PairClass::kSameNode;
  StepShape shape;
  std::vector<std::vector<std::int64_t>> visits;  // ns of the steps of each visit, in order of time

  friend bool operator==(const ProfilePoint&, const ProfilePoint&) = default;
};

// Median over visits of the mean of their steps, stalls cut; spread: quartile distance of all
// steps.
StepSample summarize(const ProfilePoint& point);

// How far the machine repeats itself: difference of the point's time by its even and by its odd
// visits, relative to it. Nothing with fewer than two visits.
std::optional<double> repeat_noise(const ProfilePoint& point);

// Nearest-rank quantile; 0 of nothing.
double quantile(std::vector<double> values, double p);

// What can be measured of a degree.
struct GridLimits {
  int max_batch = 1;
  int max_tokens = 1;
  std::function<std::int64_t(int tokens, int batch)> max_context;  // below tokens: none
};

// The points every profile begins with: batches in steps of four, five contexts each from short to
// as long as fits; prompt chunks of three sizes, alone and beside decoding sequences; small batches
// with guesses.
std::vector<StepShape> coarse_grid(const GridLimits& limits);

// Along which axis a sample was predicted from others: from its line (decode steps of one batch) by
// those of shorter and longer contexts; from the lines of smaller and larger batches; prompt chunks
// from those of fewer and more prompt tokens.
enum class GridAxis { kContext, kBatch, kPrompt };

struct PointError {
  std::size_t point = 0;  // index into the samples
  GridAxis axis{};
  double error = 0;  // relative
};

// The errors of piecewise-linear interpolation at the samples of one degree and class: for each
// axis on which a sample lies between others, it is left out, with all that have the same place on
// the axis, and predicted from the rest. The ends of an axis cannot be judged in this way.
std::vector<PointError> interpolation_errors(const std::vector<StepSample>& samples);

// New points that reduce that error, half way (on a logarithmic scale) to the neighbors on the
// axis: more contexts of the line, more lines, more chunk sizes. None if the neighbors are near or
// the limits forbid.
std::vector<StepShape> refine(const std::vector<StepSample>& samples, const PointError& error,
                              const GridLimits& limits);

}  // namespace taper
