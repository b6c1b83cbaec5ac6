// SPDX-License-Identifier: Apache-2.0
#include "base/TextFile.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "base/Error.hpp"
#include "support/Scratch.hpp"

using taper::first_line;
using taper::read_text_file;

TEST_CASE("a file is read to its end, or named") {
  const taper::test::Scratch scratch;
  const auto path = scratch / "a";
  const std::string text("one\r\n\0two", 9);
  taper::test::spill(path, text);
  CHECK(read_text_file(path) == text);
  taper::test::spill(path, "");
  CHECK(read_text_file(path).empty());
  CHECK_THROWS_WITH(read_text_file("no such"), Catch::Matchers::ContainsSubstring("'no such'") &&
                                                   Catch::Matchers::ContainsSubstring("working"));
  CHECK_THROWS_WITH(read_text_file(scratch / "none"),
                    (scratch / "none").string() + " cannot be read (no such file); check the path");
  CHECK_THROWS_WITH(read_text_file(scratch.path()),
                    scratch.path().string() + " cannot be read (it is a directory); name a file");
}

TEST_CASE("the first line of a file that need not be there") {
  const taper::test::Scratch scratch;
  const auto path = scratch / "a";
  taper::test::spill(path, "one\ntwo\n");
  CHECK(first_line(path) == "one");
  taper::test::spill(path, "one");
  CHECK(first_line(path) == "one");
  taper::test::spill(path, "");
  CHECK(first_line(path).empty());
  CHECK(first_line(scratch / "none").empty());
  CHECK(first_line(scratch.path()).empty());
}
