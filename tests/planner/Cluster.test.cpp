// SPDX-License-Identifier: Apache-2.0
#include "planner/Cluster.hpp"

#include <catch2/catch_test_macros.hpp>

#include "planner/Planner.hpp"
#include "support/heavy_tail.hpp"
#include "support/synthetic_profile.hpp"

using namespace taper;

namespace {

// 32 ranks in the layout; all replicas have one response of 100 tokens.
Snapshot short_responses(const Layout& layout) {
  Snapshot s{layout, std::vector<ReplicaSnapshot>(layout.groups().size()), 7, 3, 2};
  for (ReplicaSnapshot& r : s.replicas) ++r.lengths[length_bucket(100)];
  return s;
}

}  // namespace

TEST_CASE("a sample has the degrees of the chain up to a block") {
  CHECK(sample_chain(DivisorChain::of(1024), 8, 4).degrees() == std::vector<int>{1, 2, 4, 8, 32});
  CHECK(sample_chain(DivisorChain::of(24), 2, 3).degrees() == std::vector<int>{1, 2, 6});
}

TEST_CASE("the blocks with the longest responses stand for all, in the order of their ranks") {
  const DivisorChain chain = DivisorChain::of(32), sample = sample_chain(chain, 4, 2);
  for (const int tp : {1, 2, 4}) {
    Snapshot s = short_responses(Layout::uniform(tp, chain));
    ++s.replicas[20 / tp].lengths[length_bucket(900)];
    ++s.replicas[9 / tp].lengths[length_bucket(500)];
    const Snapshot seen = sample_of(s, sample, 4);
    CHECK(seen.layout == Layout::uniform(tp, sample));
    REQUIRE(seen.replicas.size() == static_cast<std::size_t>(8 / tp));
    CHECK(seen.replicas[(9 - 8) / tp] == s.replicas[9 / tp]);
    CHECK(seen.replicas[4 / tp] == s.replicas[20 / tp]);
    CHECK(seen.elapsed_ns == 7);
    CHECK(seen.consultation == 3);
    CHECK(seen.epoch == 2);
  }
}

TEST_CASE("among equally long ones the fuller blocks stand for all") {
  const DivisorChain chain = DivisorChain::of(32);
  Snapshot s = short_responses(Layout::uniform(1, chain));
  s.replicas[31].waiting = 5;
  const Snapshot seen = sample_of(s, sample_chain(chain, 2, 2), 2);
  CHECK(seen.replicas[3].waiting == 5);
}

TEST_CASE("plans for very many ranks cover all of them") {
  const std::vector<int> degrees{1, 2, 4, 8};
  const DivisorChain chain = DivisorChain::of(512);
  Planner planner(test::synthetic_profile(test::small_model_tcp(), degrees), chain, {});
  test::learn_heavy_tail(planner, 64 * chain.ranks());
  // Deep in the tail: one long response in each block of eight ranks.
  Snapshot s{Layout::uniform(1, chain), std::vector<ReplicaSnapshot>(512), 2'000'000'000, 0, 0};
  for (std::size_t r = 0; r < s.replicas.size(); r += 8) {
    ++s.replicas[r].lengths[length_bucket(400)];
    s.replicas[r].response = 400;
    s.replicas[r].context = s.replicas[r].longest = 500;
  }
  Decision decision = planner.decide(s);
  for (int calls = 0; decision.prices.empty() && calls < 1000; ++calls) {
    ++s.consultation;
    decision = planner.decide(s);
  }
  REQUIRE(decision.prices.size() > 1);
  for (const Price& price : decision.prices) {
    CHECK(price.plan.layout.ranks() == 512);
    if (price.plan.start == PlanStart::kBelow) {
      CHECK(price.plan.argument > 8);  // of 64 sequences, not of the sample's
      CHECK(price.plan.argument < 64);
    }
  }
  CHECK(decision.act);
  CHECK(decision.plan.layout.groups().front().tp > 1);
}
