// SPDX-License-Identifier: Apache-2.0
#include "draft/DraftOwners.hpp"

#include <catch2/catch_test_macros.hpp>

#include "draft/MadeUpSequence.hpp"

using namespace taper;
using namespace taper::test;

namespace {

using Places = std::vector<std::size_t>;

// The samples of one prompt that each of two ranks drafts for.
struct TwoRanks {
  DraftOwners owners[2];
  Places places[2];

  void step(const std::vector<int>& samples) {
    std::vector<Sequence> sequences;
    for (const int sample : samples) sequences.push_back(sequence(0, sample, {1}, {2}));
    std::vector<DraftAsk> asks;
    for (const Sequence& s : sequences) asks.push_back({&s, 1});
    for (int rank = 0; rank < 2; ++rank) places[rank] = owners[rank].deal(asks, 2, rank);
  }
};

}  // namespace

TEST_CASE("each sequence is one rank's, and new ones go to that with the fewest") {
  TwoRanks ranks;
  ranks.step({0, 1, 2, 3});
  CHECK(ranks.places[0] == Places{0, 2});
  CHECK(ranks.places[1] == Places{1, 3});
  // Samples 0 and 2 have ended: 1 and 3 stay where they are.
  ranks.step({1, 3, 4, 5, 6, 7});
  CHECK(ranks.places[0] == Places{2, 3, 4});
  CHECK(ranks.places[1] == Places{0, 1, 5});
}

TEST_CASE("what is cleared is dealt anew") {
  TwoRanks ranks;
  ranks.step({0, 1, 2, 3});
  ranks.step({2, 3, 0});
  CHECK(ranks.places[0] == Places{0, 2});
  for (DraftOwners& owners : ranks.owners) owners.clear();
  ranks.step({1, 3});
  CHECK(ranks.places[0] == Places{0});
}
