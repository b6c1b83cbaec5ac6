// SPDX-License-Identifier: Apache-2.0
#include "results/detail/StepTable.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/Error.hpp"

namespace taper::detail {

namespace {
constexpr double kHole = std::numeric_limits<double>::quiet_NaN();
}

void StepTable::begin_row(std::int64_t iteration, const std::string& what) {
  TAPER_INSIST(steps_.empty() || iteration >= steps_.back(), what << ": iteration " << iteration
                                                                  << " after " << steps_.back()
                                                                  << " without truncate_after");
  if (steps_.empty() || steps_.back() != iteration) steps_.push_back(iteration);
}

void StepTable::set(const std::string& column, std::span<const double> cell) {
  TAPER_EXPECT(!steps_.empty() && cell.size() == width_);
  auto& values = columns_[column];
  values.resize(steps_.size() * width_, kHole);
  std::copy(cell.begin(), cell.end(), values.end() - static_cast<std::ptrdiff_t>(width_));
}

void StepTable::load(std::vector<std::int64_t> steps,
                     std::map<std::string, std::vector<double>> columns) {
  steps_ = std::move(steps);
  columns_ = std::move(columns);
}

void StepTable::truncate_after(std::int64_t iteration) {
  steps_.resize(static_cast<std::size_t>(std::upper_bound(steps_.begin(), steps_.end(), iteration) -
                                         steps_.begin()));
  for (auto& [name, values] : columns_)
    values.resize(std::min(values.size(), steps_.size() * width_));
  std::erase_if(columns_, [](const auto& column) { return column.second.empty(); });
}

std::vector<std::string> StepTable::columns() const {
  std::vector<std::string> names;
  for (const auto& [name, values] : columns_) names.push_back(name);
  return names;
}

std::vector<double> StepTable::column(const std::string& name) const {
  std::vector<double> values = columns_.at(name);
  values.resize(steps_.size() * width_, kHole);
  return values;
}

}  // namespace taper::detail
