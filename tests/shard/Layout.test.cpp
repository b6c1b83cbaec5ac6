// SPDX-License-Identifier: Apache-2.0
#include "shard/Layout.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"

using namespace taper;

TEST_CASE("layouts that ranks cannot form are told why, and all others are layouts of a chain") {
  CHECK(layout_problem({2, 2, 2, 2}, 8).empty());
  CHECK(layout_problem({6, 2, 2, 1, 1}, 12).empty());
  CHECK(layout_problem({}, 8).starts_with("(for 0 ranks; there are 8)"));
  CHECK(layout_problem({4, 2}, 8).starts_with("(for 6 ranks; there are 8)"));
  CHECK(layout_problem(std::vector<int>(3, 1 << 30), 8).starts_with("(for 3221225472 ranks;"));
  CHECK(layout_problem({5, 3}, 8).starts_with("(degree 5 does not divide the 8 ranks)"));
  CHECK(layout_problem({2, 4, 2}, 8)
            .starts_with("(its group of 4 starts at rank 2, which is not a multiple"));
  CHECK(layout_problem({6, 4, 2}, 12).starts_with("(its group of 4 starts at rank 6"));
  CHECK(layout_problem({3, 3, 2, 2, 2}, 12).starts_with("(degrees 2 and 3: one must divide"));
  CHECK_THROWS_WITH(Layout({2, 4, 2}, DivisorChain::of(8)),
                    Catch::Matchers::ContainsSubstring("layout 2+4+2 (its group of 4"));
  CHECK_THROWS_WITH(Layout({4, 4}, DivisorChain({1, 2, 8})),
                    Catch::Matchers::ContainsSubstring(
                        "degree 4 (not possible in this run); choose from 1, 2, 8 "));
}

TEST_CASE("uniform layouts are rank grids") {
  const DivisorChain chain = DivisorChain::of(8);
  const Layout layout = Layout::uniform(2, chain);
  CHECK(layout.replicas() == 4);
  CHECK(layout.ranks() == 8);
  CHECK(layout.is_uniform());
  CHECK(to_string(layout) == "2x4");
  CHECK(layout == parse_layout("2x4", chain));
  for (int rank = 0; rank < 8; ++rank) CHECK(layout.replica_of(rank) == rank / 2);
}

TEST_CASE("groups of different degrees are nodes of the tree") {
  const DivisorChain chain = DivisorChain::of(8);
  const Layout layout = parse_layout("4+2+1+1", chain);
  CHECK_FALSE(layout.is_uniform());
  CHECK(to_string(layout) == "4+2+1+1");
  CHECK(layout.groups()[1] == LayoutGroup{4, 2});
  CHECK(layout.replica_of(3) == 0);
  CHECK(layout.replica_of(4) == 1);
  CHECK(layout.replica_of(7) == 3);
  CHECK_FALSE(layout == Layout::uniform(1, chain));
}

TEST_CASE("the degrees of a text do not depend on ranks") {
  CHECK(group_degrees("4+2+2") == std::vector{4, 2, 2});
  CHECK(group_degrees("3x2") == std::vector{3, 3});
  CHECK(group_degrees("8") == std::vector{8});
  for (const char* text : {"", "x", "2x", "2x0", "2x2x2", "2x2+1", "0", "2+", "2 + 2", "foo",
                           "-2x1", "1x2000000000", "99999999999x1"})
    CHECK_FALSE(group_degrees(text).has_value());
}

TEST_CASE("bad layouts are refused") {
  const DivisorChain chain = DivisorChain::of(8);
  for (const char* text :
       {"", "2", "4+4+", "+8", "3+5", "2+4+2", "1+2+5", "4+4+4", "2x2", "ax4", "8+", "-8"})
    CHECK_THROWS_AS(parse_layout(text, chain), Error);
  CHECK_THROWS_AS(Layout::uniform(3, chain), Error);
  CHECK_THROWS_AS(Layout({}, chain), Error);
}

TEST_CASE("groups that a layout lacks are changed, others are not") {
  const DivisorChain chain({1, 2, 4});
  const auto changed = [&](const char* from, const char* to) {
    return changed_groups(parse_layout(from, chain), parse_layout(to, chain));
  };
  CHECK(changed("2+1+1", "2+2") == std::vector<bool>{false, true, true});
  CHECK(changed("2+2", "2+1+1") == std::vector<bool>{false, true});
  CHECK(changed("1x4", "4x1") == std::vector<bool>(4, true));
  CHECK(changed("2x2", "2x2") == std::vector<bool>(2, false));
}
