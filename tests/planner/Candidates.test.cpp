// SPDX-License-Identifier: Apache-2.0
#include "planner/Candidates.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/synthetic_profile.hpp"

using namespace taper;

namespace {

struct Fixture {
  LatencyProfile profile = test::synthetic_profile(test::small_model_tcp(), {1, 2, 4});
  StepModel steps{profile};
  DivisorChain chain = DivisorChain::of(4);
  LayoutShape tp1 = resolve(Layout::uniform(1, chain), steps);
  LayoutShape tp2 = resolve(Layout::uniform(2, chain), steps);
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a layout is a target only where some group would step faster") {
  const std::vector<ReplicaLoad> full(4, {64, 0, 64 * 300});
  CHECK_FALSE(speeds_up(tp1, full, tp2));
  std::vector<ReplicaLoad> tail = full;
  tail[1] = {};  // its neighbor is idle
  CHECK(speeds_up(tp1, tail, tp2));
  CHECK_FALSE(speeds_up(tp1, std::vector<ReplicaLoad>(4), tp2));
  const std::vector<ReplicaLoad> queue(2, {64, 10, 64 * 300});
  CHECK(speeds_up(tp2, queue, tp1));  // more slots
}

TEST_CASE_METHOD(Fixture, "numbers two apart are uneven") {
  CHECK_FALSE(is_uneven(tp1.layout, std::vector<ReplicaLoad>{{3, 0, 9}, {2, 0, 9}, {3}, {3}}));
  CHECK(is_uneven(tp1.layout, std::vector<ReplicaLoad>{{3, 0, 9}, {1, 0, 9}, {3}, {3}}));
  CHECK(is_uneven(tp1.layout, std::vector<ReplicaLoad>{{2, 2, 9}, {2, 0, 9}, {3}, {3}}));
  CHECK_FALSE(is_uneven(parse_layout("2+1+1", chain),
                        std::vector<ReplicaLoad>{{9, 0, 9}, {1, 0, 9}, {1, 0, 9}}));
}

TEST_CASE_METHOD(Fixture, "the crossing is where step times meet") {
  const int at = crossing(tp1, tp2, 300, 256);
  REQUIRE(at > 0);
  REQUIRE(at < 256);
  const auto step = [](const LayoutShape& s, int alive) {
    const int batch = (alive + s.layout.replicas() - 1) / s.layout.replicas();
    return s.curves.front()->decode_ns(batch, batch * 300);
  };
  CHECK(step(tp2, at) < step(tp1, at));
  CHECK(step(tp2, at + 1) >= step(tp1, at + 1));
}
