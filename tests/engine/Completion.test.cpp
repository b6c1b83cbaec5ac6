// SPDX-License-Identifier: Apache-2.0
#include "engine/Completion.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("a completion has ended by itself unless it says otherwise") {
  const Completion completion;
  CHECK(completion.finish == FinishReason::kEos);
  CHECK(completion.response.empty());
}
