// SPDX-License-Identifier: Apache-2.0
//
// Rewrites the times of a profile: one tensor-parallel degree is far faster than all others and
// changing to it costs nothing, so that a run with it is sure to change its layout, however busy
// the machine was when the profile was measured. Usage: favour_degree PROFILE DEGREE
#include <cstdlib>

#include "base/Error.hpp"
#include "profile/ProfileFile.hpp"
#include "session/Guard.hpp"

using namespace taper;

int main(int argc, char** argv) {
  return run_guarded([&] {
    TAPER_VALIDATE(argc == 3, "usage: favour_degree PROFILE DEGREE");
    LatencyProfile profile = read_profile(argv[1]);
    for (StepSample& s : profile.steps)
      s.time_ns = (100'000 + 1'000 * s.new_tokens) * (s.tp == std::atoi(argv[2]) ? 1 : 50);
    for (MoveCost& move : profile.moves) move.latency_ns = move.ps_per_byte = 0;
    for (RendezvousCost& meeting : profile.rendezvous) meeting.ns = 0;
    write_profile(argv[1], profile);
    return 0;
  });
}
