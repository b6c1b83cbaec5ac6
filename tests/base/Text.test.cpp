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

TEST_CASE("words and numbers are joined") {
  CHECK(join({"a", "b"}) == "a, b");
  CHECK(join(std::vector<int>{4, -2, 0}, "+") == "4+-2+0");
  CHECK(join(std::vector<std::int64_t>{}) == "");
}

TEST_CASE("one is not many") {
  CHECK(count_text(1, "file") == "1 file");
  CHECK(count_text(0, "file") == "0 files");
  CHECK(count_text(12, "file") == "12 files");
}

TEST_CASE("sizes are readable") {
  CHECK(format_bytes(12) == "12 B");
  CHECK(format_bytes(1536) == "1.50 KiB");
  CHECK(format_bytes(3.0 * 1024 * 1024 * 1024) == "3.00 GiB");
}

TEST_CASE("trimmed and formatted texts") {
  CHECK(trim("  a b\t\r\n") == "a b");
  CHECK(trim("a") == "a");
  CHECK(trim(" \n").empty());
  CHECK(trim("").empty());
  CHECK(format_text("%d of %.1f %s", 3, 4.25, "x") == "3 of 4.2 x");
  CHECK(format_text("%s", std::string(1000, 'y').c_str()) == std::string(1000, 'y'));
  CHECK_FALSE(host_name().empty());
}

TEST_CASE("what is replaced is looked for once, from left to right") {
  const auto replaced = [](std::string text, const char* from, const char* to) {
    taper::replace_all(text, from, to);
    return text;
  };
  CHECK(replaced("a,b,,c", ",", ", ") == "a, b, , c");
  CHECK(replaced("aaa", "aa", "a") == "aa");
  CHECK(replaced("abab", "ab", "") == "");
  CHECK(replaced("aabb", "ab", "") == "ab");  // and no more
  CHECK(replaced("", "x", "y") == "");
  CHECK(replaced("text", "", "y") == "text");
  std::string long_text;
  for (int i = 0; i < 1'000'000; ++i) long_text += "\\left";
  taper::remove_all(long_text, "\\left");  // minutes if the text were moved up each time
  CHECK(long_text.empty());
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
