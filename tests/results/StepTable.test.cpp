// SPDX-License-Identifier: Apache-2.0
#include "results/detail/StepTable.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "base/Error.hpp"

using taper::detail::StepTable;

TEST_CASE("late and missing cells are NaN") {
  StepTable table;
  table.begin_row(1, "t");
  table.set("a", 1);
  table.begin_row(2, "t");
  table.set("b", 2);
  table.begin_row(4, "t");
  table.set("b", 4);
  CHECK(table.steps() == std::vector<std::int64_t>{1, 2, 4});
  CHECK(table.columns() == std::vector<std::string>{"a", "b"});
  const auto a = table.column("a"), b = table.column("b");
  CHECK(a[0] == 1);
  CHECK(std::isnan(a[1]));
  CHECK(std::isnan(a[2]));
  CHECK(std::isnan(b[0]));
  CHECK(b[1] == 2);
  CHECK(b[2] == 4);
}

TEST_CASE("what comes for an iteration in parts is one row") {
  StepTable table;
  table.begin_row(1, "t");
  table.set("a", 1);
  table.begin_row(1, "t");
  table.set("a", 2);
  CHECK(table.column("a") == std::vector<double>{2});
}

TEST_CASE("wide cells") {
  StepTable table(3);
  table.begin_row(0, "t");
  table.begin_row(1, "t");
  table.set("a", std::vector<double>{1, 2, 3});
  const auto a = table.column("a");
  REQUIRE(a.size() == 6);
  CHECK(std::isnan(a[2]));
  CHECK(a[5] == 3);
}

TEST_CASE("rows go back by truncation only") {
  StepTable table;
  for (const std::int64_t step : {1, 2, 3}) {
    table.begin_row(step, "t");
    table.set(step == 3 ? "late" : "a", static_cast<double>(step));
  }
  CHECK_THROWS_AS(table.begin_row(2, "t"), taper::Error);
  table.truncate_after(2);
  CHECK(table.steps() == std::vector<std::int64_t>{1, 2});
  CHECK(table.columns() == std::vector<std::string>{"a", "late"});
  table.truncate_after(0);
  CHECK(table.empty());
  CHECK(table.columns().empty());
  table.begin_row(1, "t");
}
