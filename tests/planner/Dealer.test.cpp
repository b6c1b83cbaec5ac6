// SPDX-License-Identifier: Apache-2.0
#include "planner/Dealer.hpp"

#include <catch2/catch_test_macros.hpp>

#include "shard/Layout.hpp"

namespace taper {
namespace {

const DivisorChain kChain({1, 2, 4});

using Counts = std::vector<int>;

TEST_CASE("short prompts are dealt to all replicas") {
  Dealer dealer(parse_layout("1x4", kChain));
  CHECK(dealer.deal(8, 10, 1000) == Counts{2, 2, 2, 2});
  CHECK(dealer.deal(6, 10, 1000) == Counts{2, 2, 1, 1});
  CHECK(dealer.deal(6, 10, 1000) == Counts{1, 1, 2, 2});
}

TEST_CASE("the longer a prompt, the fewer replicas read it") {
  Dealer dealer(parse_layout("1x4", kChain));
  CHECK(dealer.deal(8, 100, 1000) == Counts{8, 0, 0, 0});
  CHECK(dealer.deal(8, 100, 1000) == Counts{0, 8, 0, 0});
  CHECK(dealer.deal(8, 50, 1000) == Counts{0, 0, 4, 4});
  CHECK(dealer.deal(8, 0, 1000) == Counts{0, 0, 4, 4});
}

TEST_CASE("single responses are dealt in turn") {
  Dealer dealer(parse_layout("2x2", kChain));
  CHECK(dealer.deal(1, 500, 10) == Counts{1, 0});
  CHECK(dealer.deal(1, 500, 10) == Counts{0, 1});
  CHECK(dealer.deal(1, 500, 10) == Counts{1, 0});
}

TEST_CASE("larger groups get more") {
  Dealer dealer(parse_layout("2+1+1", kChain));
  CHECK(dealer.deal(8, 10, 1000) == Counts{4, 2, 2});
}

}  // namespace
}  // namespace taper
