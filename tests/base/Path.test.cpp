// SPDX-License-Identifier: Apache-2.0
#include "base/Path.hpp"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>

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

TEST_CASE("there is advice where the working directory is gone, too") {
  namespace fs = std::filesystem;
  const fs::path before = fs::current_path();
  const fs::path gone = fs::temp_directory_path() / ("taper-gone-" + std::to_string(::getpid()));
  fs::create_directories(gone);
  fs::current_path(gone);
  fs::remove(gone);
  std::string advice;
  CHECK_NOTHROW(advice = path_advice("no/such"));
  fs::current_path(before);
  CHECK(advice == "check the path");
}

TEST_CASE("a directory has one name, with or without a slash at its end") {
  CHECK(without_end_slash("a/b/") == "a/b");
  CHECK(without_end_slash("a/b") == "a/b");
  CHECK(without_end_slash("a/") == "a");
  CHECK(without_end_slash("/") == "/");
  CHECK(without_end_slash("") == "");
}

TEST_CASE("a place is known by all its names") {
  const auto here = std::filesystem::current_path();
  CHECK(place_of("no/such/../dir/") == here / "no/dir");
  CHECK(place_of(here / "no/dir") == place_of("no/dir"));
  const std::filesystem::path long_name(std::string(300, 'x'));  // cannot be looked at
  CHECK(place_of(long_name / "..") == here);
}

TEST_CASE("a path is within a directory by what it is, not by its letters") {
  CHECK(is_within("a/b", "a"));
  CHECK(is_within("a", "a/"));
  CHECK(is_within("a/../b/c", "./b"));
  CHECK(is_within("a", "/"));
  CHECK(!is_within("a2", "a"));
  CHECK(!is_within("a", "a/b"));
  CHECK(!is_within("a/../c", "a"));
}
