// SPDX-License-Identifier: Apache-2.0
#include "engine/Sequence.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("what is pending of a sequence is what the cache does not have yet") {
  Sequence sequence;
  sequence.tokens = {5, 6, 7, 8};
  sequence.prompt_length = 3;
  CHECK(sequence.length() == 4);
  CHECK(sequence.pending() == 4);
  sequence.computed = 3;
  CHECK(sequence.pending() == 1);  // plain decoding
}
