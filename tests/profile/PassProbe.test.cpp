// SPDX-License-Identifier: Apache-2.0
#include "profile/PassProbe.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "comm/Collectives.hpp"
#include "planner/PassModel.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("passes and steps of all degrees and blocks are timed, and make a model of prices") {
  TestRanks w;
  ModelFiles files(TAPER_DATA_DIR "/model");
  PassProbeOptions options;
  options.max_rows = 128;
  const std::vector<int>& degrees = w.ranks.chain.degrees();
  const auto samples = measure_passes(options, files, w.ranks, degrees);
  const auto count = [&](PassKind kind, int tp, int replicas) {
    return std::count_if(samples.begin(), samples.end(), [&](const PassSample& s) {
      return s.kind == kind && s.tp == tp && s.replicas == replicas;
    });
  };
  for (const int tp : degrees) {
    CHECK(count(PassKind::kForward, tp, 1) >= 4);
    CHECK(count(PassKind::kForward, tp, 1) == count(PassKind::kLearn, tp, 1));
    for (const int size : degrees)
      if (size % tp == 0) CHECK(count(PassKind::kUpdate, tp, size / tp) == 1);
  }
  std::vector<std::int64_t> mine, rank0;
  for (const PassSample& s : samples) mine.insert(mine.end(), {s.time_ns, s.rows, s.repeats});
  rank0 = mine;
  broadcast(w.ranks.world(), rank0, 0);
  CHECK(mine == rank0);
  LatencyProfile profile;
  profile.steps = {{1, PairClass::kSameNode, 1, 1, 1, 1, 0, 1}};
  profile.passes = samples;
  CHECK(profile.problems().empty());
  CHECK(PassModel(profile).degrees() == degrees);
}
