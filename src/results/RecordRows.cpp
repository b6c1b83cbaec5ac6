// SPDX-License-Identifier: Apache-2.0
#include "results/RecordRows.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/Error.hpp"

namespace taper {
namespace {

const std::int64_t kNoInteger = -1;
const double kNoNumber = std::numeric_limits<double>::quiet_NaN();
const std::string kNoText;

// Cuts a column, or fills it with holes.
void resize(RecordColumn& column, std::size_t rows) {
  if (auto* integers = std::get_if<std::vector<std::int64_t>>(&column))
    integers->resize(rows, kNoInteger);
  else if (auto* numbers = std::get_if<std::vector<double>>(&column))
    numbers->resize(rows, kNoNumber);
  else
    std::get<std::vector<std::string>>(column).resize(rows, kNoText);
}

}  // namespace

void RecordRows::add(std::int64_t iteration, const RecordRow& row, const std::string& what) {
  TAPER_INSIST(steps_.empty() || iteration >= steps_.back(), what << ": iteration " << iteration
                                                                  << " after " << steps_.back()
                                                                  << " without truncate_after");
  steps_.push_back(iteration);
  for (auto& [name, column] : columns_) resize(column, steps_.size());
  for (const auto& [name, value] : row)
    std::visit(
        [&, &name = name](const auto& v) {
          using Values = std::vector<std::decay_t<decltype(v)>>;
          auto& column = columns_.try_emplace(name, Values()).first->second;
          auto* values = std::get_if<Values>(&column);
          TAPER_INSIST(values != nullptr, what << "/" << name << " gets a value of another type");
          resize(column, steps_.size());
          values->back() = v;
        },
        value);
}

void RecordRows::load(std::vector<std::int64_t> steps,
                      std::map<std::string, RecordColumn> columns) {
  steps_ = std::move(steps);
  columns_ = std::move(columns);
}

void RecordRows::truncate_after(std::int64_t iteration) {
  steps_.resize(static_cast<std::size_t>(std::upper_bound(steps_.begin(), steps_.end(), iteration) -
                                         steps_.begin()));
  if (steps_.empty()) columns_.clear();
  for (auto& [name, column] : columns_) resize(column, steps_.size());
}

}  // namespace taper
