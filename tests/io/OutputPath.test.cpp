// SPDX-License-Identifier: Apache-2.0
#include "io/OutputPath.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/Scratch.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

TEST_CASE("places that can be written pass, and nothing is left there") {
  const test::Scratch scratch;
  CHECK_NOTHROW(require_output_directory("Output/Directory", scratch.path()));
  CHECK_NOTHROW(require_output_directory("Output/Directory", scratch / "a" / "b" / "c"));
  CHECK_NOTHROW(require_writable(scratch / "a" / "out.jsonl", {}));
  CHECK(fs::is_empty(scratch.path()));
  test::spill(scratch / "out.jsonl", "old");
  CHECK_NOTHROW(require_writable(scratch / "out.jsonl", {}));
  CHECK(test::slurp(scratch / "out.jsonl") == "old");
}

TEST_CASE("places that cannot be written are named with their option") {
  const test::Scratch scratch;
  test::spill(scratch / "file", "");
  CHECK_THROWS_WITH(
      require_output_directory("Output/Directory", scratch / "file"),
      ContainsSubstring("Output/Directory is") && ContainsSubstring("not a directory"));
  CHECK_THROWS_WITH(require_output_directory("Output/Directory", scratch / "file" / "run"),
                    ContainsSubstring("Not a directory"));
  // Permission bits do not tell, of root not at all.
  CHECK_THROWS_WITH(
      require_output_directory("Output/Directory", "/proc/taper"),
      ContainsSubstring("/proc/taper") && ContainsSubstring("nothing can be created"));
  CHECK_THROWS_WITH(require_writable("/proc/taper/out.jsonl", {}),
                    ContainsSubstring("cannot be written"));
  CHECK_THROWS_WITH(require_output_directory("Output/Directory", std::string(300, 'x')),
                    ContainsSubstring("too long"));
}

TEST_CASE("results never replace a directory or a device") {
  const test::Scratch scratch;
  CHECK_THROWS_WITH(require_writable(scratch.path(), {}), ContainsSubstring("is a directory"));
  CHECK_THROWS_WITH(require_writable("/dev/null", {}), ContainsSubstring("device or pipe"));
}

TEST_CASE("results never replace what they are made from") {
  const test::Scratch scratch;
  test::spill(scratch / "in.jsonl", "old");
  fs::create_symlink(scratch / "in.jsonl", scratch / "link");
  const std::vector<fs::path> inputs{"", scratch / "in.jsonl"};
  for (const char* name : {"in.jsonl", "link", "./in.jsonl"})
    CHECK_THROWS_WITH(require_writable(scratch / name, inputs),
                      ContainsSubstring(name) && ContainsSubstring("is the input"));
  CHECK_NOTHROW(require_writable(scratch / "out.jsonl", inputs));
}
