// SPDX-License-Identifier: Apache-2.0
//
// A rank that ends between the meeting and the change of layout that it agreed to. Usage:
// reshape_fault throw | kill | sleep
#include <unistd.h>

#include <Kokkos_Core.hpp>
#include <csignal>

#include "base/Error.hpp"
#include "reshape/Fleet.hpp"
#include "session/Guard.hpp"
#include "session/Startup.hpp"
#include "session/Watchdog.hpp"

using namespace taper;
using namespace taper::test;

namespace {

void run(const std::string& fault, Progress& progress) {
  GroupOptions options{WaitMode::kYield};
  options.progress = &progress;
  Fleet fleet(
      "llama_b", DivisorChain({1, 2}), 1, [](const GoldenModel& m, int) { return roomy(m); }, {},
      WeightType::kF32, options);
  fleet.begin("1x2", {}, {}, {{{0, 0}, 2, random_prompt(0, 40, 331), 30}});
  for (int i = 0; i < 5; ++i) fleet.step();
  progress.set_phase("switch");
  const LayoutChange change{fleet.layout_of("1x2"), fleet.layout_of("2x1"), 1};
  const SequenceList list = fleet.reshaper->meet(change, *fleet.engine);
  if (fleet.rank() == 1) {
    if (fault == "kill") std::raise(SIGKILL);
    if (fault == "sleep")
      for (;;) ::pause();
    TAPER_FAIL(ExitCode::kFailure, "rank 1 leaves the change");
  }
  fleet.reshaper->apply(change, list, share_out(change, list), *fleet.engine);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string fault = argc > 1 ? argv[1] : "";
  return run_guarded([&] {
    Progress progress;
    const Watchdog watchdog(progress,
                            {.hang_seconds = 2.0, .grace_seconds = 1.0, .directory = "."});
    MpiSession session(argc, argv);
    const Kokkos::ScopeGuard kokkos(argc, argv);
    run(fault, progress);
    return 0;
  });
}
