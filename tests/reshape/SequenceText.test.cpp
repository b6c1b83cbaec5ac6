// SPDX-License-Identifier: Apache-2.0
#include "reshape/SequenceText.hpp"

#include <catch2/catch_test_macros.hpp>

#include "base/Error.hpp"

using namespace taper;

namespace {

Sequence example(int tokens) {
  Sequence s;
  s.id.prompt = 1234567890123;
  s.id.sample = 3;
  s.samples = 2;
  s.prompt_length = 2;
  s.max_new_tokens = 77;
  s.pinned = {11, 13};
  s.computed = 5;
  for (int i = 0; i < tokens; ++i) {
    s.tokens.push_back(i * 7);
    s.log_probs.push_back(-0.25f * static_cast<float>(i));
    s.kept_mass.push_back(1.0f);
  }
  s.spans = {{0, 1, 2}, {9, 4, 0}};
  s.blocks = {1, 2, 3};
  return s;
}

}  // namespace

TEST_CASE("sequences survive the way to another rank, but for their blocks") {
  std::string bytes;
  append_sequence(bytes, example(9));
  append_sequence(bytes, Sequence());
  append_sequence(bytes, example(1));
  const auto read = read_sequences(bytes);
  REQUIRE(read.size() == 3);
  const Sequence expected = example(9);
  CHECK(read[0].id.prompt == expected.id.prompt);
  CHECK(read[0].id.sample == 3);
  CHECK(read[0].samples == 2);
  CHECK(read[0].prompt_length == 2);
  CHECK(read[0].max_new_tokens == 77);
  CHECK(read[0].pinned == expected.pinned);
  CHECK(read[0].computed == 5);
  CHECK(read[0].tokens == expected.tokens);
  CHECK(read[0].log_probs == expected.log_probs);
  CHECK(read[0].kept_mass == expected.kept_mass);
  CHECK(read[0].spans == expected.spans);
  CHECK(read[0].blocks.empty());
  CHECK(read[1].tokens.empty());
  CHECK(read[2].tokens.size() == 1);
}

TEST_CASE("the bytes of a sequence are known before it is written") {
  for (const int tokens : {0, 1, 9, 1000}) {
    Sequence s = example(tokens);
    s.pinned.clear();
    std::string bytes;
    append_sequence(bytes, s);
    CHECK(sequence_bytes(tokens) == static_cast<std::int64_t>(bytes.size()));
  }
}

TEST_CASE("a message that was cut or damaged is refused") {
  std::string bytes;
  append_sequence(bytes, example(9));
  CHECK_THROWS_AS(read_sequences(bytes.substr(0, bytes.size() - 1)), Error);
  CHECK_THROWS_AS(read_sequences(bytes.substr(0, 10)), Error);
  bytes[55] = '\x7f';  // the length of the list of tokens
  CHECK_THROWS_AS(read_sequences(bytes), Error);
  CHECK(read_sequences("").empty());
}
