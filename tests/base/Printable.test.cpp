// SPDX-License-Identifier: Apache-2.0
#include "base/Printable.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("what a terminal would obey becomes visible") {
  CHECK(printable("\x1b[31mred\x1b[0m\a") == "\\x1b[31mred\\x1b[0m\\x07");
  CHECK(printable("a\rb\x7f") == "a\\x0db\\x7f");
  CHECK(printable(std::string("a\0b", 3)) == "a\\x00b");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\u009b31m");  // CSI in one character
  CHECK(printable("\xe2\x80\xae"
                  "ab") == "\\u202eab");  // turns the direction
}

TEST_CASE("text stays as it is") {
  for (const char* text : {"", "one\n\ttwo", "gr\xc3\xbc\xc3\x9f, \xe4\xb8\xad, \xf0\x9f\x98\x80",
                           "\xc2\xa0\xef\xbf\xbd"})
    CHECK(printable(text) == text);
}

TEST_CASE("bytes that are no UTF-8 are shown as such") {
  CHECK(printable("a\xff"
                  "b") == "a\\xffb");
  CHECK(printable("\xc3") == "\\xc3");  // cut off
  CHECK(printable("\xe4\xb8") == "\\xe4\\xb8");
  CHECK(printable("\xc0\x80") == "\\xc0\\x80");                    // longer than needed
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // a surrogate
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond Unicode
}

TEST_CASE("JSON keeps its values") {
  CHECK(printable_json("\"a\x7f\xc2\x9b\\n\"") == "\"a\\u007f\\u009b\\n\"");
  CHECK(printable_json("\"\xc3\xbc\"") == "\"\xc3\xbc\"");
}
