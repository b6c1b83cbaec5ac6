// SPDX-License-Identifier: Apache-2.0
#include "model/StepGraphs.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

// What devices record is tested with whole generations (tests/engine/RecordedSteps.test.cpp).
TEST_CASE("on the host no step is recorded: each one calls its launches") {
  StepGraphs graphs;
  int calls = 0;
  for (int step = 0; step < 3; ++step)
    graphs.run(HostExec(), {&graphs, &graphs, &graphs, &graphs, &graphs, 4}, [&] { ++calls; });
  CHECK(calls == 3);
  CHECK(graphs.largest() == 0);
  CHECK(StepGraphs::padded_rows(5, 64) == 0);
}
