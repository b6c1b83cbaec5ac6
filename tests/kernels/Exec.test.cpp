// SPDX-License-Identifier: Apache-2.0
#include "kernels/Exec.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "kernels/detail/Launch.hpp"

using namespace taper;

TEST_CASE("after a fence every index of a launch was done once") {
  const HostExec exec;
  REQUIRE(exec.concurrency() >= 1);
  for (const std::int64_t n : {0, 1, 7, 1000}) {
    std::vector<int> even(n, 0), uneven(n, 0);
    detail::for_each("taper::test_even", exec, n, [&](const std::int64_t i) { ++even[i]; });
    detail::for_each_uneven("taper::test_uneven", exec, n,
                            [&](const std::int64_t i) { ++uneven[i]; });
    exec.fence();
    CHECK(even == std::vector<int>(n, 1));
    CHECK(uneven == even);
  }
}
