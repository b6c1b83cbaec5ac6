// SPDX-License-Identifier: Apache-2.0
#include "driver/ConfigChanges.hpp"

#include <catch2/catch_test_macros.hpp>

#include "driver/Options_params.hpp"
#include "param/ParamFile.hpp"

using namespace taper;

namespace {

using Lines = std::vector<std::string>;

std::string yaml_with(const std::vector<const char*>& assignments) {
  RunOptions options;
  param::Schema schema;
  describe(schema, options);
  param::ParamFile file;
  file.set("Model/Directory=model");
  for (const char* assignment : assignments) file.set(assignment);
  schema.read(file);
  return schema.current_yaml();
}

}  // namespace

TEST_CASE("changed parameters are named with their section, old and new value") {
  const std::string before = yaml_with({});
  CHECK(config_changes(before, before).empty());
  CHECK(config_changes(before, yaml_with({"Training/Iterations=6", "Checkpoint/Every=3",
                                          "Output/Directory=a: b"})) ==
        Lines{"Training/Iterations: 45 -> 6", "Checkpoint/Every: 10 -> 3",
              "Output/Directory: taper-run -> 'a: b'"});
}

TEST_CASE("one name in two sections is two parameters, and lines that move are none") {
  const std::string before = "# a: comment\nA:\n  Every: 1\n  Other: 2\nB:\n  Every: 1\n",
                    now = "B:\n  # b: comment\n  Every: 5\nA:\n  Other: 2\n  Every: 1\n";
  CHECK(config_changes(before, now) == Lines{"B/Every: 1 -> 5"});
}

TEST_CASE("values are compared, not how they are written") {
  CHECK(config_changes("A: {Rate: 1.0e-3, Name: 'x', List: [a, b]}  # flow\n",
                       "A:\n  Rate: 0.001\n  Name: \"x\"\n  List:\n    - a\n    - b\n")
            .empty());
  CHECK(config_changes("A: {List: [a, b]}\n", "A: {List: [a, c]}\n").size() == 1);
  CHECK(config_changes("A: {Name: '1'}\n", "A: {Name: 1}\n") == Lines{"A/Name: '1' -> 1"});
}

TEST_CASE("parameters that only one version has are named, too") {
  CHECK(config_changes("A:\n  Old: 1\n  Same: 2\n", "A:\n  Same: 2\n  New: 3\n") ==
        Lines{"A/New: (none) -> 3", "A/Old: 1 -> (none)"});
  CHECK(config_changes("", "").empty());
  CHECK(config_changes("no parameters", "A:\n  B:\n    C: 1\n") == Lines{"A/B/C: (none) -> 1"});
}
