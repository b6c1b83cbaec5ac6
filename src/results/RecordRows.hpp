// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace taper {

// A value of a record: an integer, a number, or a text such as a layout ("2x1").
using RecordValue = std::variant<std::int64_t, double, std::string>;
// One record by columns.
using RecordRow = std::vector<std::pair<std::string, RecordValue>>;
// The values of a column, (records), all of one type.
using RecordColumn =
    std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>>;

// Records of iterations under named columns, row by row; an iteration may have any number of them.
// Columns may appear late and records may lack columns: holes are -1, NaN or the empty text.
// Iterations never go back.
class RecordRows {
 public:
  // Throws if iteration would go back, or if a value has another type than its column; what
  // names the table in the error.
  void add(std::int64_t iteration, const RecordRow& row, const std::string& what);
  // All of it, as stored; each column has a value per step.
  void load(std::vector<std::int64_t> steps, std::map<std::string, RecordColumn> columns);

  void truncate_after(std::int64_t iteration);

  bool empty() const { return steps_.empty(); }
  const std::vector<std::int64_t>& steps() const { return steps_; }
  const std::map<std::string, RecordColumn>& columns() const { return columns_; }

 private:
  std::vector<std::int64_t> steps_;
  std::map<std::string, RecordColumn> columns_;
};

}  // namespace taper
