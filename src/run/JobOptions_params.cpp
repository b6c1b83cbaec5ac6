// SPDX-License-Identifier: Apache-2.0
#include "run/JobOptions_params.hpp"

namespace taper {

void describe_run(param::Section& schema, JobOptions& o) {
  auto s = schema.section("Run", "The whole job");
  s.integer("Seed", o.seed, "Seed of all random numbers").at_least(0);
  s.number("Hang Seconds", o.hang_seconds,
           "A rank that waits longer than this for another one ends the job with a report")
      .above(0);
  s.number("Deadline Margin", o.deadline_margin,
           "Save and stop this many seconds before the deadline (--deadline, TAPER_DEADLINE)")
      .at_least(0);
}

}  // namespace taper
