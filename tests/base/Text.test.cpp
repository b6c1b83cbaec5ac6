// SPDX-License-Identifier: Apache-2.0
#include "base/Text.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("nearest suggests the known word with the fewest edits") {
  const std::vector<std::string> known{"Temperature", "Top P", "Top K", "Seed"};
  CHECK(nearest("Temperatur", known) == "Temperature");
  CHECK(nearest("top p", known) == "Top P");
  CHECK(nearest("completely different", known).empty());
}

TEST_CASE("sizes are readable") {
  CHECK(format_bytes(12) == "12 B");
  CHECK(format_bytes(1536) == "1.50 KiB");
  CHECK(format_bytes(3.0 * 1024 * 1024 * 1024) == "3.00 GiB");
}

TEST_CASE("the time is a text that sorts") {
  const std::string now = utc_text();
  REQUIRE(now.size() == 20);
  CHECK((now[4] == '-' && now[7] == '-' && now[10] == 'T' && now[16] == ':' && now[19] == 'Z'));
  CHECK(now >= "2026-01-01T00:00:00Z");
  CHECK(utc_text() >= now);
}

TEST_CASE("fnv1a gives the published hashes") {
  CHECK(fnv1a("") == 0xcbf29ce484222325ull);
  CHECK(fnv1a("a") == 0xaf63dc4c8601ec8cull);
}
