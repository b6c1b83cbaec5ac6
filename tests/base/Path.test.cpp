// SPDX-License-Identifier: Apache-2.0
#include "base/Path.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("paths with blanks are quoted in messages") {
  CHECK(path_text("a/b.yaml") == "a/b.yaml");
  CHECK(path_text("my runs/b.yaml") == "'my runs/b.yaml'");
  CHECK(path_text("") == "''");
  CHECK(line_text("p.jsonl", 3) == "p.jsonl:3");
  CHECK(line_text("my p.jsonl", 3) == "'my p.jsonl':3");
}

TEST_CASE("the directory that a relative path counts from is told") {
  const std::string here = path_text(std::filesystem::current_path());
  CHECK(path_advice("/no/such") == "check the path");
  CHECK(path_advice("no/such").find("working directory, " + here) != std::string::npos);
}

TEST_CASE("a directory has one name, with or without a slash at its end") {
  CHECK(without_end_slash("a/b/") == "a/b");
  CHECK(without_end_slash("a/b") == "a/b");
  CHECK(without_end_slash("a/") == "a");
  CHECK(without_end_slash("/") == "/");
  CHECK(without_end_slash("") == "");
}
