// SPDX-License-Identifier: Apache-2.0
#include "shard/ModelLayout.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace taper;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("ranks of a model are read and printed") {
  const auto ranks = find_model_ranks("4-7");
  REQUIRE(ranks);
  CHECK(ranks->ranks == RankBlock{4, 4});
  CHECK_FALSE(ranks->grid);
  const auto layout = find_model_ranks("4-7:2x2");
  REQUIRE(layout);
  CHECK(layout->grid == RankGrid{2, 2});
  CHECK(find_model_ranks("3")->ranks == RankBlock{3, 1});
  CHECK(to_string(RankBlock{3, 1}) == "3");
  CHECK(to_string(ModelLayout{4, {2, 2}}) == "4-7:2x2");
  for (const char* text : {"0:1x1", "0-1:2x1", "8-15:4x2"}) {
    const auto read = find_model_ranks(text);
    REQUIRE(read);
    CHECK(to_string(ModelLayout{read->ranks.first, *read->grid}) == text);
  }
}

TEST_CASE("other texts are no ranks of a model") {
  for (const char* text : {"", "-", "4-", "-4", "7-4", "a", "4-7:", "4-7:2", "4-7:2x1", "4-7:3x1",
                           "4-7x", " 4-7", "4--7", "1,2", "99999999999"})
    CHECK_FALSE(find_model_ranks(text));
}

TEST_CASE("blocks overlap if they share a rank") {
  const RankBlock low{0, 2}, high{2, 2}, all{0, 4};
  CHECK_FALSE(low.overlaps(high));
  CHECK_FALSE(high.overlaps(low));
  CHECK(all.overlaps(high));
  CHECK(high.overlaps(all));
  CHECK(high.has(3));
  CHECK_FALSE(high.has(1));
}

TEST_CASE("a block is a node of the tree of ranks") {
  const DivisorChain chain({1, 2, 4, 8});
  CHECK(block_problem({4, 4}, chain).empty());
  CHECK(block_problem({7, 1}, chain).empty());
  CHECK(block_problem({0, 8}, chain).empty());
  CHECK_THAT(block_problem({2, 4}, chain),
             ContainsSubstring("multiple of 4") && ContainsSubstring("write 0-3 or 4-7"));
  CHECK_THAT(block_problem({3, 3}, chain), ContainsSubstring("one of 1, 2, 4, 8 ranks"));
  CHECK_THAT(block_problem({8, 1}, chain), ContainsSubstring("ranks below 8"));
  // Groups of a block are groups of all ranks, with the same shards.
  for (const int rank : {4, 5, 6, 7})
    CHECK(chain.shard_index(rank, 4) == DivisorChain({1, 2, 4}).shard_index(rank - 4, 4));
}
