// SPDX-License-Identifier: Apache-2.0
#include "profile/ProfileTable.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace taper;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("the table names degrees, errors, noise and costs") {
  LatencyProfile p;
  StepSample s;
  s.tp = 2;
  s.pair = PairClass::kOtherNode;
  s.new_tokens = s.sequences = 4;
  s.context = 400;
  s.time_ns = 1234567;
  s.repeats = 9;
  p.steps.push_back(s);
  p.fit_errors.push_back({2, PairClass::kOtherNode, 12300, 45600, 50000, 60000});
  p.repeat_noise.push_back({2, PairClass::kOtherNode, 7800, 9900, 10000, 20000});
  p.moves.push_back({PairClass::kOtherNode, 25000, 2000});
  p.rendezvous.push_back({2, 61000});
  p.weights_ns = 1500;
  const std::string table = to_table(p);
  for (const char* part :
       {"   2  other node", "1.235", "1.23 /  4.56", "0.78 /  0.99", "25.0 us and 0.50 GB/s",
        "rendezvous of 2 ranks: 61.0 us", "weights 1.5 us"})
    CHECK_THAT(table, ContainsSubstring(part));
  CHECK_THAT(table, ContainsSubstring("measured: complete\n"));
}

TEST_CASE("an incomplete profile says so, and what to do") {
  LatencyProfile p;
  CHECK(completeness_problem(p).empty());
  p.measured_percent = 7;
  CHECK_THAT(to_table(p), ContainsSubstring("measured: incomplete, 7 % of what was planned\n"));
  CHECK_THAT(completeness_problem(p), ContainsSubstring("7 %") && ContainsSubstring("resumes"));
}
