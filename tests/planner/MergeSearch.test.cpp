// SPDX-License-Identifier: Apache-2.0
#include "planner/MergeSearch.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/synthetic_profile.hpp"

using namespace taper;

namespace {

struct Fixture {
  LatencyProfile profile = test::synthetic_profile(test::small_model_tcp(), {1, 2, 4});
  StepModel steps{profile};
  SwitchCost cost{profile};
  DivisorChain chain = DivisorChain::of(4);
  LayoutShape tp1 = resolve(Layout::uniform(1, chain), steps);

  // So many sequences at each rank; those of rank 0 are `longest` tokens from their end.
  PlayedGeneration run(const std::vector<int>& sequences, int longest) const {
    PlayedGeneration run(tp1, cost, 64);
    std::int64_t id = 0;
    for (int r = 0; r < 4; ++r)
      for (int i = 0; i < sequences[r]; ++i)
        run.add(r, {id++, 100, 50, 50, r == 0 ? longest : 1500, 0});
    run.start();
    return run;
  }
  std::string best(const std::vector<PlayedGeneration>& runs,
                   const std::vector<int>& degrees) const {
    MergeSearch search(tp1.layout, chain, steps, degrees, 64);
    for (const PlayedGeneration& r : runs) search.add(r);
    const auto found = search.best();
    return found ? to_string(*found) : "none";
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "idle ranks join only the replica that still has a tail") {
  // A long sequence beside an idle rank; the other pair is busy, and faster apart.
  CHECK(best({run({1, 0, 60, 60}, 4000)}, {1, 2}) == "2+1+1");
  // If only one sequence is left, all ranks together: a uniform layout.
  CHECK(best({run({1, 0, 0, 0}, 4000)}, {1, 2, 4}) == "none");
  CHECK(best({run({1, 1, 1, 1}, 50)}, {1}) == "none");
}

TEST_CASE_METHOD(Fixture, "the mean over the scenarios decides") {
  const auto merge = run({1, 0, 60, 60}, 4000), apart = run({60, 60, 60, 60}, 1500);
  CHECK(best({apart}, {1, 2}) == "none");
  CHECK(best({merge, merge, merge, apart}, {1, 2}) == "2+1+1");
  CHECK(best({merge, apart, apart, apart}, {1, 2}) == "none");
}
