// SPDX-License-Identifier: Apache-2.0
#include "base/Utf8.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("code points are written and read back") {
  const std::pair<char32_t, std::string> smallest_and_largest[] = {{0x00, std::string(1, '\0')},
                                                                   {0x7F, "\x7F"},
                                                                   {0x80, "\xC2\x80"},
                                                                   {0x7FF, "\xDF\xBF"},
                                                                   {0x800, "\xE0\xA0\x80"},
                                                                   {0xFFFF, "\xEF\xBF\xBF"},
                                                                   {0x10000, "\xF0\x90\x80\x80"},
                                                                   {0x10FFFF, "\xF4\x8F\xBF\xBF"}};
  for (const auto& [value, bytes] : smallest_and_largest) {
    std::string text = "a";
    append_utf8(text, value);
    REQUIRE(text == "a" + bytes);
    CHECK(read_utf8(text, 1).value == value);
    CHECK(read_utf8(text, 1).bytes == bytes.size());
    CHECK(utf8_length(text, 1) == bytes.size());
    CHECK(is_valid_utf8(text));
  }
}

TEST_CASE("what is no well-formed sequence has no length") {
  for (const char* text : {"\x80", "\xC3", "\xC3g", "\xC0\x80", "\xE4\xB8", "\xED\xA0\x80",
                           "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\xFF"}) {
    CHECK(utf8_length(text, 0) == 0);
    CHECK_FALSE(is_valid_utf8(text));
  }
}

TEST_CASE("bytes that are not UTF-8 become one U+FFFD per maximal part") {
  const std::string r = "\xEF\xBF\xBD";
  // Examples of the Unicode standard, tables 3-8 to 3-11.
  CHECK(replace_invalid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41") ==
        r + r + r + r + r + r + r + r + "A");
  CHECK(replace_invalid_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41") ==
        r + r + r + r + r + r + r + r + "A");
  CHECK(replace_invalid_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42") ==
        r + r + r + r + r + "A" + r + r + "B");
  CHECK(replace_invalid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41") == r + r + r + r + "A");
  CHECK(replace_invalid_utf8("caf\xC3") == "caf" + r);
}
