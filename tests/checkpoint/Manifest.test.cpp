// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/Manifest.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <span>
#include <string>

#include "base/Checksum.hpp"
#include "comm/Collectives.hpp"
#include "io/Json.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

struct Fixture : TestRanks {
  Scratch scratch;
  const Group& world = ranks.world();

  void write(const std::string& name, const std::string& text) {
    if (ranks.rank() == 0) {
      fs::create_directories((scratch / name).parent_path());
      spill(scratch / name, text);
    }
    barrier(world);
  }
  std::vector<std::string> problems() const { return manifest_problems(scratch.path(), world); }
};

}  // namespace

TEST_CASE("a manifest does not depend on the number of ranks, and has a checksum for each part") {
  Fixture f;
  f.write("a", std::string(25, 'a'));
  f.write("critic/b", std::string(10, 'b'));
  f.write("empty", "");
  write_manifest(f.scratch.path(), 7, f.world, 10);
  barrier(f.world);
  const std::string shared = slurp(f.scratch / "manifest.json");
  barrier(f.world);
  const Json manifest = parse_json(shared, "manifest");
  CHECK(manifest["iteration"] == 7);
  CHECK(manifest["files"].size() == 3);
  CHECK(manifest["files"]["a"]["bytes"] == 25);
  REQUIRE(manifest["files"]["a"]["checksums"].size() == 3);
  CHECK(manifest["files"]["a"]["checksums"][0] == manifest["files"]["a"]["checksums"][1]);
  CHECK(manifest["files"]["critic/b"]["checksums"].size() == 1);
  CHECK(manifest["files"]["empty"]["checksums"].empty());
  CHECK(f.problems().empty());
  barrier(f.world);
  if (f.ranks.rank() == 0) {
    fs::remove(f.scratch / "manifest.json");
    write_manifest(f.scratch.path(), 7, Group::self(), 10);
    CHECK(slurp(f.scratch / "manifest.json") == shared);
    CHECK(manifest_problems(f.scratch.path(), Group::self()).empty());
  }
}

TEST_CASE("damage in any part is found, and told to all ranks alike") {
  Fixture f;
  const std::string text = "some text of forty characters, or nearly";
  f.write("a", text);
  f.write("b", text);
  write_manifest(f.scratch.path(), 1, f.world, 8);
  barrier(f.world);
  for (std::size_t at : {0u, 9u, 20u, 39u}) {
    std::string damaged = text;
    damaged[at] ^= 1;
    f.write("b", damaged);
    const auto problems = f.problems();
    REQUIRE(problems.size() == 1);
    CHECK_THAT(problems.front(), ContainsSubstring("/b is damaged"));
    barrier(f.world);
  }
  f.write("b", text + "!");
  const auto problems = f.problems();
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems.front(), ContainsSubstring("/b has 41 bytes"));
}

TEST_CASE("a manifest whose checksums do not fit its parts is none") {
  Fixture f;
  f.write("a", "123456789");
  write_manifest(f.scratch.path(), 1, f.world, 4);
  barrier(f.world);
  OrderedJson manifest = OrderedJson::parse(slurp(f.scratch / "manifest.json"));
  barrier(f.world);
  manifest["part_bytes"] = 8;
  f.write("manifest.json", manifest.dump());
  CHECK_THAT(f.problems().front(), ContainsSubstring("a checksum for each part of a"));
  barrier(f.world);
  manifest["part_bytes"] = 0;
  f.write("manifest.json", manifest.dump());
  CHECK_THAT(f.problems().front(), ContainsSubstring("part_bytes"));
}

TEST_CASE(
    "a file that is missing, and manifests of earlier and later versions, mean the same to all "
    "ranks") {
  Fixture f;
  f.write("a", "of the first");
  f.write("b", "of the second");
  Checksum64 sum;
  sum.add(std::as_bytes(std::span("of the first", 12)));
  OrderedJson manifest{{"version", 1}};
  manifest["files"]["a"] = {{"bytes", 12}, {"checksum", sum.value()}};
  f.write("manifest.json", manifest.dump());
  CHECK(f.problems().empty());
  barrier(f.world);
  manifest["files"]["a"]["checksum"] = 1;
  manifest["files"]["b"] = 3;
  manifest["files"]["c"] = {{"bytes", 1}, {"checksum", 1}};
  f.write("manifest.json", manifest.dump());
  const auto problems = f.problems();
  REQUIRE(problems.size() == 3);
  CHECK_THAT(problems[0], ContainsSubstring("/a is damaged"));
  CHECK_THAT(problems[1], ContainsSubstring("is not a manifest"));
  CHECK_THAT(problems[2], ContainsSubstring("/c is missing"));
  barrier(f.world);
  manifest["version"] = 3;
  f.write("manifest.json", manifest.dump());
  REQUIRE(f.problems().size() == 1);
  CHECK_THAT(f.problems().front(), ContainsSubstring("has version 3"));
}

TEST_CASE("ranks that read many parts meet in between") {
  Fixture f;
  std::string text;
  for (int i = 0; i < 100; ++i) text += std::to_string(i);
  f.write("a", text);
  write_manifest(f.scratch.path(), 1, f.world, 1);
  barrier(f.world);
  CHECK(f.problems().empty());
  barrier(f.world);
  text.back() ^= 1;
  f.write("a", text);
  CHECK(f.problems().size() == 1);
}
