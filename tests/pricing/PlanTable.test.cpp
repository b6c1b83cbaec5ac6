// SPDX-License-Identifier: Apache-2.0
#include "pricing/PlanTable.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "io/Json.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("placements are listed beside flattening, with what they took") {
  PlannedPlacements plans;
  PlannedPlacement flat, best;
  flat.name = "flattening";
  flat.iteration_ns = 3'000'000'000;
  best.name = "1";
  best.iteration_ns = 2'000'000'000;
  best.rank_bytes = std::int64_t{3} << 30;
  best.measured_s = 2.5;
  best.settings = {{"Placement/Policy", "0:1x1"}};
  best.calls = {{"policy", {0, {1, 1}}, 0, 1'500'000'000}};
  plans.strategies = {flat};
  plans.found = {best};
  const std::string table = to_table(plans);
  CHECK_THAT(table, ContainsSubstring("flattening       3.000    1.00x"));
  CHECK_THAT(table,
             ContainsSubstring("2.000    1.50x     3.00       2.500  -20.0 %  policy 0:1x1"));
  CHECK_THAT(table, ContainsSubstring("0.000 to    1.500"));
  const std::string lines = to_json_lines(plans);
  const auto second = parse_json(lines.substr(lines.find('\n') + 1), "line");
  CHECK(second["measured_s"] == 2.5);
  CHECK(second["settings"]["Placement/Policy"] == "0:1x1");
  CHECK(second["calls"][0]["end_s"] == 1.5);
}
