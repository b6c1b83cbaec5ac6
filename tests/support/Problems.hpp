// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

namespace taper::test {

// Exactly one problem, which names all the words.
inline void check_problem(const std::vector<std::string>& problems,
                          const std::vector<const char*>& words) {
  REQUIRE(problems.size() == 1);
  for (const char* word : words)
    CHECK_THAT(problems.front(), Catch::Matchers::ContainsSubstring(word));
}

}  // namespace taper::test
