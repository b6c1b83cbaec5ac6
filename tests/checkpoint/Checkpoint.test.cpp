// SPDX-License-Identifier: Apache-2.0
//
// The folder of checkpoints; saving and loading are tested by TrainJob.test.cpp.
#include "checkpoint/Checkpoint.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Checksum.hpp"
#include "io/Json.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& path : CheckpointStore::list(directory)) names.push_back(path.filename());
  return names;
}

}  // namespace

TEST_CASE("checkpoints are listed newest first, also beyond a million iterations") {
  const Scratch scratch;
  CHECK(names_in(scratch / "nothing").empty());
  for (const char* name : {"iter_000009", "iter_999999", "iter_1000000", "iter_000010",
                           "iter_000011.old", "iter_000012.writing", "iter_13", "notes"})
    fs::create_directories(scratch / name);
  spill(scratch / "iter_000014", "a file is none");
  CHECK(names_in(scratch.path()) ==
        std::vector<std::string>{"iter_1000000", "iter_999999", "iter_000010", "iter_000009"});
  CheckpointStore(scratch.path(), 2).remove_after(10);
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"iter_000010", "iter_000009"});
}

TEST_CASE("all files that do not agree with the manifest are named") {
  const Scratch scratch;
  OrderedJson manifest;
  for (const char* name : {"a", "b", "c", "d"}) {
    const std::string text = std::string("content of ") + name;
    spill(scratch / name, text);
    Checksum64 sum;
    sum.add(std::as_bytes(std::span(text.data(), text.size())));
    manifest["files"][name] = {{"bytes", text.size()}, {"checksum", sum.value()}};
  }
  CHECK(!CheckpointStore::is_checkpoint(scratch.path()));
  write_json_file(scratch / "manifest.json", manifest);
  CHECK(CheckpointStore::is_checkpoint(scratch.path()));
  CHECK(CheckpointStore::problems(scratch.path()).empty());

  spill(scratch / "a", "Content of a");
  spill(scratch / "b", "cut");
  fs::remove(scratch / "c");
  const auto problems = CheckpointStore::problems(scratch.path());
  REQUIRE(problems.size() == 3);
  CHECK_THAT(problems[0], ContainsSubstring("/a is damaged"));
  CHECK_THAT(problems[1], ContainsSubstring("/b has 3 bytes"));
  CHECK_THAT(problems[2], ContainsSubstring("/c is missing"));

  for (const char* text : {"{}", "no JSON", "{\"files\": {\"d\": 1}}"}) {
    INFO(text);
    spill(scratch / "manifest.json", text);
    REQUIRE(CheckpointStore::problems(scratch.path()).size() == 1);
    CHECK_THAT(CheckpointStore::problems(scratch.path()).front(),
               ContainsSubstring("manifest.json"));
  }
  fs::remove(scratch / "manifest.json");
  CHECK(CheckpointStore::problems(scratch.path()).size() == 1);
}

TEST_CASE("a checkpoint in a directory with blanks stands in quotes") {
  const Scratch scratch;
  fs::create_directories(scratch / "my run");
  write_json_file(scratch / "my run" / "manifest.json",
                  OrderedJson{{"files", {{"a", {{"bytes", 1}, {"checksum", 2}}}}}});
  const auto problems = CheckpointStore::problems(scratch / "my run");
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0], ContainsSubstring("/my run/a' is missing"));
}
