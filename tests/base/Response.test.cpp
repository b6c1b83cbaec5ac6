// SPDX-License-Identifier: Apache-2.0
#include "base/Response.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <utility>

using namespace taper;

TEST_CASE("length buckets are powers of two") {
  for (const auto& [length, bucket] : {std::pair{0, 0},
                                       {1, 0},
                                       {2, 1},
                                       {3, 1},
                                       {4, 2},
                                       {1023, 9},
                                       {1024, 10},
                                       {1 << 19, 19},
                                       {1 << 25, 19}})
    CHECK(length_bucket(length) == bucket);
}

TEST_CASE("ends are named as inference servers do") {
  CHECK(to_string(FinishReason::kEos) == std::string("stop"));
  CHECK(to_string(FinishReason::kStop) == std::string("stop"));
  CHECK(to_string(FinishReason::kLength) == std::string("length"));
  CHECK(to_string(FinishReason::kAbort) == std::string("abort"));
}
