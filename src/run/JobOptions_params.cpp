// SPDX-License-Identifier: Apache-2.0
#include "run/JobOptions_params.hpp"

namespace taper {

param::Section describe_run(param::Section& schema, std::uint64_t& seed, double& hang_seconds) {
  auto s = schema.section("Run", "The whole job");
  s.integer("Seed", seed, "Seed of all random numbers").at_least(0);
  s.number("Hang Seconds", hang_seconds,
           "A rank that waits longer than this for another one ends the job with a report")
      .above(0);
  return s;
}

void describe_deadline(param::Section& run, double& margin) {
  run.number("Deadline Margin", margin,
             "Save and stop this many seconds before the deadline (--deadline, TAPER_DEADLINE)")
      .at_least(0);
}

}  // namespace taper
