// SPDX-License-Identifier: Apache-2.0
#include "planner/Dealer.hpp"

#include <catch2/catch_test_macros.hpp>

#include "base/Random.hpp"
#include "shard/Layout.hpp"

namespace taper {
namespace {

const DivisorChain kChain({1, 2, 4});

// Responses to the next prompt by replica.
std::vector<int> counts(Dealer& dealer, int replicas, int samples, std::int64_t prompt,
                        std::int64_t most) {
  std::vector<int> list(replicas, 0);
  int last = -1;
  for (const Deal& deal : dealer.deal(samples, prompt, most)) {
    CHECK(deal.replica > last);
    CHECK(deal.samples > 0);
    list.at(last = deal.replica) = deal.samples;
  }
  return list;
}

using Counts = std::vector<int>;

TEST_CASE("short prompts are dealt to all replicas") {
  Dealer dealer(parse_layout("1x4", kChain));
  CHECK(counts(dealer, 4, 8, 10, 1000) == Counts{2, 2, 2, 2});
  CHECK(counts(dealer, 4, 6, 10, 1000) == Counts{2, 2, 1, 1});
  CHECK(counts(dealer, 4, 6, 10, 1000) == Counts{1, 1, 2, 2});
}

TEST_CASE("the longer a prompt, the fewer replicas read it") {
  Dealer dealer(parse_layout("1x4", kChain));
  CHECK(counts(dealer, 4, 8, 100, 1000) == Counts{8, 0, 0, 0});
  CHECK(counts(dealer, 4, 8, 100, 1000) == Counts{0, 8, 0, 0});
  CHECK(counts(dealer, 4, 8, 50, 1000) == Counts{0, 0, 4, 4});
  CHECK(counts(dealer, 4, 8, 0, 1000) == Counts{0, 0, 4, 4});
}

TEST_CASE("single responses are dealt in turn") {
  Dealer dealer(parse_layout("2x2", kChain));
  CHECK(counts(dealer, 2, 1, 500, 10) == Counts{1, 0});
  CHECK(counts(dealer, 2, 1, 500, 10) == Counts{0, 1});
  CHECK(counts(dealer, 2, 1, 500, 10) == Counts{1, 0});
}

TEST_CASE("larger groups get more") {
  Dealer dealer(parse_layout("2+1+1", kChain));
  CHECK(counts(dealer, 3, 8, 10, 1000) == Counts{4, 2, 2});
}

TEST_CASE(
    "each response goes to the replica that has the fewest per rank, the first among equals") {
  const DivisorChain chain({1, 2, 4, 8});
  const Layout layout = parse_layout("4+2+1+1", chain);
  Dealer dealer(layout);
  std::vector<std::int64_t> taken(4, 0);
  RandomStream random(3, RandomPurpose::kTest, 0, 0);
  for (int prompt = 0; prompt < 50; ++prompt) {
    const int samples = static_cast<int>(random.between(1, 9));
    const std::int64_t tokens = random.between(1, 400);
    Counts expected(4, 0);
    int readers = 0;
    for (int i = 0; i < samples; ++i) {
      int best = -1;
      for (int r = 0; r < 4; ++r) {
        if (readers >= most_readers(samples, tokens, 500) && expected[r] == 0) continue;
        if (best < 0 || taken[r] * layout.groups()[best].tp < taken[best] * layout.groups()[r].tp)
          best = r;
      }
      readers += expected[best]++ == 0 ? 1 : 0;
      ++taken[best];
    }
    CHECK(counts(dealer, 4, samples, tokens, 500) == expected);
  }
}

}  // namespace
}  // namespace taper
