// SPDX-License-Identifier: Apache-2.0
#include "run/RunConfig.hpp"

#include <catch2/catch_test_macros.hpp>

#include "base/Error.hpp"
#include "param/ParamFile.hpp"
#include "param/Schema.hpp"
#include "results/RunFile.hpp"
#include "support/Scratch.hpp"

using namespace taper;

namespace {

using Lines = std::vector<std::string>;

std::string yaml_with(const std::vector<const char*>& assignments) {
  int iterations = 45, every = 10;
  std::string output = "taper-run";
  param::Schema schema;
  schema.section("Training", "").integer("Iterations", iterations, "");
  schema.section("Checkpoint", "").integer("Every", every, "");
  schema.section("Output", "").text("Directory", output, "");
  param::ParamFile file;
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

TEST_CASE("a run file tells parameters of its run, as far as it has them") {
  const test::Scratch scratch;
  const auto path = scratch / "run.h5";
  RunFile run(path);
  run.set_config(
      "Checkpoint:\n  Every: 3\n  Of Another Version: 1\nModel:\n  Directory: 'a: b'\n"
      "Training:\n  Iterations: many\n");
  run.save();
  CHECK(recorded_integer(path, "Checkpoint", "Every", 10) == 3);
  CHECK(recorded_integer(path, "Checkpoint", "Keep", 2) == 2);
  CHECK(recorded_integer(path, "Training", "Iterations", 45) == 45);
  CHECK(recorded_text(path, "Model", "Directory", "") == "a: b");
  CHECK(recorded_text(path, "Output", "Directory", "none") == "none");
}

TEST_CASE("a run file that tells nothing is an error") {
  const test::Scratch scratch;
  const auto read = [&](const char* name) {
    return recorded_integer(scratch / name, "Checkpoint", "Every", 1);
  };
  CHECK_THROWS_AS(read("none.h5"), Error);
  test::spill(scratch / "damaged.h5", "no HDF5");
  CHECK_THROWS_AS(read("damaged.h5"), Error);
  RunFile run(scratch / "run.h5");
  run.set_config("no parameters");
  run.save();
  CHECK_THROWS_AS(read("run.h5"), Error);
}
