// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace taper::detail {

// Named columns of numbers over iterations, filled row by row; what comes for an iteration in parts
// is one row. Columns may appear late and rows may lack columns: holes are NaN. Iterations never go
// back.
class StepTable {
 public:
  // width: numbers per cell.
  explicit StepTable(std::size_t width = 1) : width_(width) {}

  // Makes iteration the last row. Throws if it would go back; what names the table in the error.
  void begin_row(std::int64_t iteration, const std::string& what);
  // A cell of the last row; a second value replaces the first.
  void set(const std::string& column, std::span<const double> cell);
  void set(const std::string& column, double value) {
    set(column, std::span<const double>(&value, 1));
  }
  // A whole column as stored: (rows, width).
  void load(std::vector<std::int64_t> steps, std::map<std::string, std::vector<double>> columns);

  void truncate_after(std::int64_t iteration);

  bool empty() const { return steps_.empty(); }
  std::size_t width() const { return width_; }
  const std::vector<std::int64_t>& steps() const { return steps_; }
  std::vector<std::string> columns() const;
  // (rows, width), holes filled.
  std::vector<double> column(const std::string& name) const;

 private:
  std::size_t width_;
  std::vector<std::int64_t> steps_;
  std::map<std::string, std::vector<double>> columns_;  // each as long as its last value
};

}  // namespace taper::detail
