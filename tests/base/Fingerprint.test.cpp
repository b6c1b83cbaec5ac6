// SPDX-License-Identifier: Apache-2.0
#include "base/Fingerprint.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace taper;

TEST_CASE("a fingerprint is FNV-1a over the bytes of all values in order") {
  CHECK(Fingerprint().value() == 0xcbf29ce484222325ull);  // as published
  CHECK(Fingerprint("a").value() == 0xaf63dc4c8601ec8cull);
  CHECK(Fingerprint().add('a').value() == 0xaf63dc4c8601ec8cull);
  const std::vector<char> text{'f', 'o', 'o', 'b', 'a', 'r'};
  CHECK(Fingerprint("foo").add_all(std::span(text).subspan(3)).value() == 0x85944171f73967e8ull);
}

TEST_CASE("order, values and the borders of texts count") {
  CHECK(Fingerprint().add(1).add(2).value() != Fingerprint().add(2).add(1).value());
  CHECK(Fingerprint().add(1.0).value() != Fingerprint().add(1.5).value());
  CHECK(Fingerprint().add_text("ab").add_text("c").value() !=
        Fingerprint().add_text("a").add_text("bc").value());
}
