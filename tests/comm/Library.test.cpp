// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/Library.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEST_CASE("NCCL is loaded and its errors are named") {
  CHECK(nccl::library().problem.empty());
  CHECK(nccl::library().version >= 21800);
  CHECK(nccl::version_text(22809) == "2.28.9");
  CHECK_NOTHROW(nccl::require(ncclSuccess, "ncclSend"));
  CHECK_THROWS_MATCHES(nccl::require(ncclRemoteError, "ncclSend"), Error,
                       MessageMatches(ContainsSubstring("ncclSend failed: remote ")));
}
