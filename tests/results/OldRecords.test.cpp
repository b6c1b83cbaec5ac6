// SPDX-License-Identifier: Apache-2.0
#include "results/detail/OldRecords.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>

using namespace taper;
using detail::layout_of_code;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("layouts of the codes of version 1") {
  CHECK(layout_of_code(2, 0) == "2x1");
  CHECK(layout_of_code(11, 0) == "1x2");
  CHECK(layout_of_code(422, 0) == "4+2+2");
  CHECK(layout_of_code(4211, 0) == "4+2+1+1");
  CHECK(layout_of_code(111'111'111'111'111, 0) == "1x15");
  CHECK(layout_of_code(-16'000'001, 0) == "16x1");
  CHECK(layout_of_code(-1'000'016, 0) == "1x16");
  CHECK(layout_of_code(-2'000'032, 64) == "2x32");
  CHECK(layout_of_code(-2'000'032, 48) == "32 groups of up to 2");
  CHECK(layout_of_code(-2'000'032, 0) == "32 groups of up to 2");
  CHECK(layout_of_code(0, 0).empty());
  CHECK(layout_of_code(kNan, 0).empty());
}

TEST_CASE("columns of version 1 get the types of today") {
  const RecordColumn numbers = std::vector<double>{11, 2, kNan};
  const auto layouts = detail::upgraded("/layout_switches/to", numbers, 2);
  CHECK(std::get<std::vector<std::string>>(layouts) == std::vector<std::string>{"1x2", "2x1", ""});
  const auto counts = detail::upgraded("/layout_switches/sequences", numbers, 2);
  CHECK(std::get<std::vector<std::int64_t>>(counts) == std::vector<std::int64_t>{11, 2, -1});
  for (const char* name : {"/layout_switches/time_s", "/decisions/tp"})
    CHECK(std::holds_alternative<std::vector<double>>(detail::upgraded(name, numbers, 2)));
  const RecordColumn texts = std::vector<std::string>{"1x2"};
  CHECK(detail::upgraded("/layout_switches/to", texts, 2) == texts);
}
