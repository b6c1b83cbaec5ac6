// SPDX-License-Identifier: Apache-2.0
#include "draft/RecalledResponses.hpp"

#include <catch2/catch_test_macros.hpp>

#include "draft/MadeUpSequence.hpp"

using namespace taper;
using namespace taper::test;

namespace {

using Tokens = std::vector<std::int32_t>;

const ResponseId kId{3, 1};
const Tokens kTokens{1, 2, 5, 6, 7, 8};  // two of a prompt

Tokens after(RecalledResponses& recalled, const Sequence& s, int most) {
  const auto tokens = recalled.after(s, most);
  return {tokens.begin(), tokens.end()};
}

}  // namespace

TEST_CASE("a response goes on as it did before, as far as it had come") {
  RecalledResponses recalled;
  CHECK(recalled.empty());
  recalled.add(kId, kTokens);
  CHECK_FALSE(recalled.empty());
  CHECK(after(recalled, sequence(3, 1, {1, 2}, {}), 9) == Tokens{5, 6, 7, 8});
  CHECK(after(recalled, sequence(3, 1, {1, 2}, {5}), 2) == Tokens{6, 7});
  CHECK(after(recalled, sequence(3, 1, {1, 2}, {5}), 0).empty());
  CHECK(after(recalled, sequence(3, 0, {1, 2}, {5}), 9).empty());
  CHECK(after(recalled, sequence(3, 1, {1, 2}, {5, 6, 7}), 9) == Tokens{8});
  CHECK(after(recalled, sequence(3, 1, {1, 2}, {5, 6, 7, 8}), 9).empty());
  CHECK(recalled.empty());
}

TEST_CASE("a sequence that goes another way is forgotten") {
  RecalledResponses recalled;
  recalled.add(kId, kTokens);
  CHECK(after(recalled, sequence(3, 1, {1, 2}, {5}), 9) == Tokens{6, 7, 8});
  CHECK(after(recalled, sequence(3, 1, {1, 2}, {5, 9}), 9).empty());
  CHECK(after(recalled, sequence(3, 1, {1, 2}, {5, 6}), 9).empty());
  recalled.add(kId, kTokens);
  CHECK(after(recalled, sequence(3, 1, {1, 4}, {}), 9).empty());  // another prompt
  CHECK(recalled.empty());
  recalled.add(kId, kTokens);
  CHECK(after(recalled, sequence(3, 1, {1, 2}, {5, 6}), 9) == Tokens{7, 8});
  CHECK(after(recalled, sequence(3, 1, {1, 2}, {5}), 9).empty());  // another generation
  CHECK(recalled.empty());
  recalled.add(kId, kTokens);
  recalled.clear();
  CHECK(recalled.empty());
}
