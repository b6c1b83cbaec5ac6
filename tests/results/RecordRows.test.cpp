// SPDX-License-Identifier: Apache-2.0
#include "results/RecordRows.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "base/Error.hpp"

using namespace taper;

namespace {

template <class T>
const std::vector<T>& values(const RecordRows& rows, const std::string& column) {
  return std::get<std::vector<T>>(rows.columns().at(column));
}

}  // namespace

TEST_CASE("a column has one type, and holes of it") {
  RecordRows rows;
  rows.add(1, {{"count", 7}, {"layout", "2x1"}}, "/t");
  rows.add(1, {{"seconds", 0.5}, {"flag", true}}, "/t");
  rows.add(2, {{"count", 8}}, "/t");
  CHECK(rows.steps() == std::vector<std::int64_t>{1, 1, 2});
  CHECK(values<std::int64_t>(rows, "count") == std::vector<std::int64_t>{7, -1, 8});
  CHECK(values<std::int64_t>(rows, "flag") == std::vector<std::int64_t>{-1, 1, -1});
  CHECK(values<std::string>(rows, "layout") == std::vector<std::string>{"2x1", "", ""});
  const auto& seconds = values<double>(rows, "seconds");
  REQUIRE(seconds.size() == 3);
  CHECK(std::isnan(seconds[0]));
  CHECK(seconds[1] == 0.5);
  CHECK(std::isnan(seconds[2]));
}

TEST_CASE("a value of another type than its column is a bug") {
  RecordRows rows;
  rows.add(1, {{"layout", "2x1"}}, "/t");
  CHECK_THROWS_AS(rows.add(2, {{"layout", 2}}, "/t"), Error);
}

TEST_CASE("records go back by truncation only") {
  RecordRows rows;
  for (const std::int64_t step : {1, 2, 2, 3}) rows.add(step, {{"a", step}}, "/t");
  CHECK_THROWS_AS(rows.add(2, {{"a", 2}}, "/t"), Error);
  rows.truncate_after(2);
  CHECK(rows.steps() == std::vector<std::int64_t>{1, 2, 2});
  CHECK(values<std::int64_t>(rows, "a") == std::vector<std::int64_t>{1, 2, 2});
  rows.truncate_after(0);
  CHECK(rows.empty());
  CHECK(rows.columns().empty());
  rows.add(1, {{"a", "text"}}, "/t");
}
