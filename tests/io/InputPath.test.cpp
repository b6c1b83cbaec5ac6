// SPDX-License-Identifier: Apache-2.0
#include "io/InputPath.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/Scratch.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("what is there passes") {
  const test::Scratch scratch;
  test::spill(scratch / "config.json", "{}");
  CHECK_NOTHROW(require_input_file("--input", scratch / "config.json"));
  CHECK_NOTHROW(require_input_path("--run", scratch / "config.json"));
  CHECK_NOTHROW(require_input_path("--run", scratch.path()));
  CHECK_NOTHROW(require_model_directory("Model/Directory", scratch.path()));
}

TEST_CASE("what is missing is named with its option and the directory it counts from") {
  const std::string here = std::filesystem::current_path().string();
  CHECK_THROWS_WITH(require_model_directory("Model/Directory", "no/such"),
                    ContainsSubstring("Model/Directory is no/such (no such file or directory)") &&
                        ContainsSubstring("working directory, ") && ContainsSubstring(here));
  CHECK_THROWS_WITH(require_model_directory("Model/Directory", ""),
                    ContainsSubstring("Model/Directory is not set"));
  CHECK_THROWS_WITH(
      require_input_file("Rollout/Profile", "no where.h5", "measure one"),
      ContainsSubstring("Rollout/Profile is 'no where.h5'") && ContainsSubstring("or measure one"));
  CHECK_THROWS_WITH(require_input_path("--run", "/no/such"),
                    ContainsSubstring("--run is /no/such"));
}

TEST_CASE("what is of another kind is refused") {
  const test::Scratch scratch;
  test::spill(scratch / "file", "");
  CHECK_THROWS_WITH(require_input_file("Data/Prompts", scratch.path()),
                    ContainsSubstring("(a directory); name a file"));
  CHECK_THROWS_WITH(require_model_directory("--model", scratch / "file"),
                    ContainsSubstring("(a file)"));
  CHECK_THROWS_WITH(require_model_directory("--model", scratch.path()),
                    ContainsSubstring("no config.json in it"));
  CHECK_THROWS_WITH(require_input_file("--input", scratch / "file" / "below"),
                    ContainsSubstring("--input is"));
}
