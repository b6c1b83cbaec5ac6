// SPDX-License-Identifier: Apache-2.0
#include "planner/PassModel.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/Error.hpp"

namespace taper {
namespace {

constexpr std::size_t kFactors = 4;
using Row = std::array<double, kFactors>;

Row features(const PassWork& work) {
  const auto rows = static_cast<double>(work.rows);
  return {1.0, rows, rows * work.length, static_cast<double>(work.targets)};
}

Row features_of_step(int replicas) {
  return {1.0, 1.0 / replicas, 0.0, 0.0};
}

double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (std::size_t i = 0; i < kFactors; ++i) sum += a[i] * b[i];
  return sum;
}

// Least squares by the normal equations over the features in use, each scaled to its mean. A
// feature that no sample tells from the others counts nothing.
Row solve(const std::vector<Row>& rows, const std::array<bool, kFactors>& in_use) {
  std::array<std::array<double, kFactors + 1>, kFactors> a{};
  Row scale{};
  for (std::size_t i = 0; i < kFactors; ++i) {
    for (const Row& row : rows) scale[i] += std::abs(row[i]) / static_cast<double>(rows.size());
    if (!in_use[i]) scale[i] = 0;
  }
  const auto scaled = [&](const Row& row, std::size_t i) {
    return scale[i] > 0 ? row[i] / scale[i] : 0.0;
  };
  for (const Row& row : rows)
    for (std::size_t i = 0; i < kFactors; ++i) {
      for (std::size_t j = 0; j < kFactors; ++j) a[i][j] += scaled(row, i) * scaled(row, j);
      a[i][kFactors] += scaled(row, i);  // each row stands for a measured time of one
    }
  Row x{};
  std::array<bool, kFactors> done{};
  std::array<std::size_t, kFactors> pivot_of{};
  pivot_of.fill(kFactors);
  for (std::size_t column = 0; column < kFactors; ++column) {
    std::size_t best = kFactors;
    for (std::size_t r = 0; r < kFactors; ++r)
      if (!done[r] && (best == kFactors || std::abs(a[r][column]) > std::abs(a[best][column])))
        best = r;
    if (std::abs(a[best][column]) < 1e-9 * static_cast<double>(rows.size())) continue;
    done[best] = true;
    pivot_of[column] = best;
    for (std::size_t r = 0; r < kFactors; ++r) {
      if (r == best) continue;
      const double factor = a[r][column] / a[best][column];
      for (std::size_t c = column; c <= kFactors; ++c) a[r][c] -= factor * a[best][c];
    }
  }
  for (std::size_t i = 0; i < kFactors; ++i)
    if (pivot_of[i] != kFactors) x[i] = a[pivot_of[i]][kFactors] / a[pivot_of[i]][i] / scale[i];
  return x;
}

// The factors of least relative error, none negative: the most negative one is taken out until none
// is left.
Row fit(std::vector<Row> rows, const std::vector<double>& times) {
  for (std::size_t s = 0; s < rows.size(); ++s)
    for (double& value : rows[s]) value /= times[s];
  std::array<bool, kFactors> in_use{true, true, true, true};
  for (;;) {
    const Row x = solve(rows, in_use);
    const auto least = std::min_element(x.begin(), x.end());
    if (*least >= 0) return x;
    in_use[static_cast<std::size_t>(least - x.begin())] = false;
  }
}

PassWork work_of(const PassSample& s) {
  return {s.rows, s.targets, static_cast<double>(s.length)};
}

std::int64_t whole(double ns) {
  return std::max<std::int64_t>(0, std::llround(ns));
}

}  // namespace

PassModel::PassModel(const LatencyProfile& profile) {
  TAPER_VALIDATE(!profile.passes.empty(),
                 "the profile has no passes of training; measure them: the same command as it was "
                 "measured with, and --passes");
  std::map<std::tuple<PassKind, int, PairClass>, std::pair<std::vector<Row>, std::vector<double>>>
      samples;
  std::map<int, std::set<PassKind>> kinds;
  for (const PassSample& s : profile.passes) {
    auto& [rows, times] = samples[{s.kind, s.tp, s.pair}];
    const bool is_step = s.kind == PassKind::kUpdate;
    rows.push_back(is_step ? features_of_step(s.replicas) : features(work_of(s)));
    times.push_back(static_cast<double>(s.time_ns));
    if (is_step) updates_[{s.tp, s.replicas, s.pair}] = s.time_ns;
    kinds[s.tp].insert(s.kind);
  }
  for (auto& [key, found] : samples) factors_[key] = fit(std::move(found.first), found.second);
  for (const auto& [tp, found] : kinds)
    if (found.size() == 3) degrees_.push_back(tp);
  for (const PassSample& s : profile.passes)
    if (s.kind != PassKind::kUpdate)
      errors_.push_back(std::abs(static_cast<double>(pass_ns(s.kind, s.tp, s.pair, work_of(s))) /
                                     static_cast<double>(s.time_ns) -
                                 1.0));
  std::sort(errors_.begin(), errors_.end());
}

const PassModel::Factors& PassModel::factors(PassKind kind, int tp, PairClass pair) const {
  auto at = factors_.find({kind, tp, pair});
  if (at == factors_.end())
    at = factors_.find(
        {kind, tp, pair == PairClass::kSameNode ? PairClass::kOtherNode : PairClass::kSameNode});
  TAPER_VALIDATE(at != factors_.end(), "the profile has no "
                                           << to_string(kind) << " at tensor-parallel degree " << tp
                                           << "; measure it again with taper profile --passes");
  return at->second;
}

std::int64_t PassModel::pass_ns(PassKind kind, int tp, PairClass pair, const PassWork& work) const {
  return work.rows == 0 ? 0 : whole(dot(factors(kind, tp, pair), features(work)));
}

std::int64_t PassModel::update_ns(int tp, int replicas, PairClass pair) const {
  const auto measured = updates_.find({tp, replicas, pair});
  if (measured != updates_.end()) return measured->second;
  return whole(dot(factors(PassKind::kUpdate, tp, pair), features_of_step(replicas)));
}

}  // namespace taper
