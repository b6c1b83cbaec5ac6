// SPDX-License-Identifier: Apache-2.0
#include "tune/TuningOptions.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/Problems.hpp"

using namespace taper;
using taper::test::check_problem;

TEST_CASE("a reward model needs pairs, and an end of the run") {
  RewardModelOptions o;
  o.data.files = {"pairs.jsonl"};
  CHECK(o.problems().empty());
  o.epochs = 0;
  check_problem(o.problems(), {"Training/Epochs", "Training/Steps"});
  o.steps = 5;
  CHECK(o.problems().empty());
  o.validate_every = 2;
  check_problem(o.problems(), {"Validation/Every is 2", "Data/Validation Files"});
  o.data.validation_files = {"held_out.jsonl"};
  o.best_by = "val/accuracy";
  CHECK(o.problems().empty());
  o.best_by = "val/score";
  check_problem(o.problems(), {"Validation/Best By is val/score", "val/margin"});
  o.best_by = "val/loss";
  o.validate_every = 0;
  check_problem(o.problems(), {"Validation/Best By", "Validation/Every is 0"});
  o.best_by.clear();
  o.data.files.clear();
  check_problem(o.problems(), {"Data/Files is not set"});
}
