// SPDX-License-Identifier: Apache-2.0
#include "rollout/GenerationReport.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("a generation in one line names its layouts and what the changes took") {
  const DivisorChain chain({1, 2, 4});
  const Layout apart = parse_layout("1x4", chain), mixed = parse_layout("2+1+1", chain);
  GenerationReport report{apart, mixed, 3.5, 7, 0.002};
  CHECK(summary(report) == "layout 1x4; 7 consultations and the first choice, 2.00 ms");
  SwitchRecord change{{mixed, PlanStart::kNow, 0, Repack::kNo}, apart};
  change.at_s = 1.25;
  change.seconds = 0.004;
  change.sequences = 12;
  report.switches.push_back(change);
  CHECK(summary(report).find("2+1+1") == std::string::npos);  // agreed upon, not done
  report.switches.front().report.done = true;
  report.switches.front().report.bytes_planned = 4096;
  CHECK(summary(report).find("layout 1x4, 2+1+1 at 1.25 s (12 sequences, ") == 0);
  CHECK(summary(report).find(" moved, 4.0 ms); 7 consultations") != std::string::npos);
  report.consultations = report.switches.front().sequences = 1;
  CHECK(summary(report).find("at 1.25 s (1 sequence,") != std::string::npos);
  CHECK(summary(report).find("; 1 consultation and the first choice, ") != std::string::npos);
}
