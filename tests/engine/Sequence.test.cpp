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

TEST_CASE("a prompt is shared until each of its samples is a sequence with an end of its own") {
  Sequence prompt;
  prompt.id = {9, 4};
  prompt.samples = 3;
  prompt.max_new_tokens = 20;
  prompt.tokens = {5, 6};
  CHECK(prompt.is_shared_prompt());
  for (const bool pinned : {false, true}) {
    if (pinned) prompt.pinned = {11, 30, 13};
    for (int k = 0; k < 3; ++k) {
      const Sequence child = prompt.fork(k);
      CHECK_FALSE(child.is_shared_prompt());
      CHECK(child.id == ResponseId{9, 4 + k});
      CHECK(child.tokens == prompt.tokens);
      CHECK(child.limit() == (pinned ? std::vector<int>{11, 20, 13}[k] : 20));
    }
  }
}
