// SPDX-License-Identifier: Apache-2.0
#include "session/LayoutChecks.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "base/Error.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEST_CASE("a chain holds the degrees asked for, and steps between them") {
  CHECK(chain_with(8, {}).degrees() == std::vector<int>{1, 2, 4, 8});
  CHECK(chain_with(12, {6}).has(6));
  CHECK(chain_with(12, {4}).has(4));
  CHECK_THROWS_MATCHES(
      chain_with(8, {3}), Error,
      MessageMatches(ContainsSubstring("degree 3 on 8 ranks (it must divide them)")));
  CHECK_THROWS_MATCHES(chain_with(12, {4, 6}), Error,
                       MessageMatches(ContainsSubstring("degrees 4 and 6 on 12 ranks")));
}

TEST_CASE("degrees that do not fit are named with their options") {
  CHECK(require_divisible(8, {{"Rollout/Tensor Parallel", 2}, {"Training/...", 4}}) ==
        std::vector<int>{2, 4});
  CHECK_THROWS_MATCHES(require_divisible(8, {{"Rollout/Tensor Parallel", 3}}), Error,
                       MessageMatches(ContainsSubstring("Rollout/Tensor Parallel is 3")));
  CHECK_THROWS_MATCHES(
      require_divisible(12, {{"Rollout/Tensor Parallel", 4}, {"Training/Tensor Parallel", 6}}),
      Error, MessageMatches(ContainsSubstring("4 and Training/Tensor Parallel is 6")));
}

TEST_CASE("layouts that the ranks cannot form are named with their option") {
  const auto problem = [](const char* text, int ranks) -> std::string {
    try {
      require_layout("Rollout/Layout", text, ranks);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(problem("", 3).empty());
  CHECK(problem("2x4", 8).empty());
  CHECK(problem("4+2+2", 8).empty());
  CHECK_THAT(problem("3x1", 2),
             ContainsSubstring("Rollout/Layout is 3x1 (for 3 ranks; there are 2"));
  CHECK_THAT(problem("foo", 2), ContainsSubstring("Rollout/Layout is 'foo' (expected: TPxDP"));
  CHECK_THAT(problem("2+1", 3), ContainsSubstring("degree 2 does not divide the 3 ranks"));
  CHECK_THAT(problem("1+2+1", 4), ContainsSubstring("group of 2 starts at rank 1"));
  CHECK_THAT(problem("3+3+2+2+2", 12), ContainsSubstring("2 and 3: one must divide the other"));
}
