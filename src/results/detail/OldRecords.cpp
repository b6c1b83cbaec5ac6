// SPDX-License-Identifier: Apache-2.0
#include "results/detail/OldRecords.hpp"

#include <algorithm>
#include <cmath>

#include "base/Text.hpp"
#include "results/FileSchema.hpp"

namespace taper::detail {
namespace {

std::string uniform_text(std::int64_t degree, std::int64_t groups) {
  return std::to_string(degree) + "x" + std::to_string(groups);
}

std::string large_layout(std::int64_t code, int ranks) {
  constexpr std::int64_t kLargest = 1'000'000;
  const std::int64_t degree = code / kLargest, groups = code % kLargest;
  if (degree == 1 || groups == 1 || degree * groups == ranks) return uniform_text(degree, groups);
  return std::to_string(groups) + " groups of up to " + std::to_string(degree);
}

}  // namespace

std::string layout_of_code(double code, int ranks) {
  if (!std::isfinite(code) || code == 0) return "";
  const std::int64_t whole = std::llround(code);
  if (whole < 0) return large_layout(-whole, ranks);
  std::vector<std::string> degrees;
  for (const char digit : std::to_string(whole)) degrees.emplace_back(1, digit);
  const bool is_uniform = std::all_of(degrees.begin(), degrees.end(),
                                      [&](const auto& degree) { return degree == degrees[0]; });
  return is_uniform ? uniform_text(std::stoi(degrees[0]), std::ssize(degrees)) : join(degrees, "+");
}

RecordColumn upgraded(const std::string& dataset, RecordColumn column, int ranks) {
  const ColumnRule* rule = column_rule(dataset);
  const auto* numbers = std::get_if<std::vector<double>>(&column);
  if (rule == nullptr || numbers == nullptr) return column;
  if (rule->type == StoredType::kText) {
    std::vector<std::string> texts;
    for (const double code : *numbers) texts.push_back(layout_of_code(code, ranks));
    return texts;
  }
  if (rule->type == StoredType::kI64) {
    std::vector<std::int64_t> integers;
    for (const double value : *numbers)
      integers.push_back(std::isfinite(value) ? std::llround(value) : -1);
    return integers;
  }
  return column;
}

}  // namespace taper::detail
