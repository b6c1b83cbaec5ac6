// SPDX-License-Identifier: Apache-2.0
#include "tune/TuningOptions.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "support/Problems.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using taper::test::check_problem;
using taper::test::Scratch;
namespace fs = std::filesystem;

TEST_CASE("the trained model replaces neither the run nor the model that it is made of") {
  const Scratch scratch;
  fs::create_directories(scratch / "base");
  fs::create_directory_symlink(scratch / "base", scratch / "link");
  const auto at = [&](const char* place) { return (scratch / place).string(); };
  SftOptions o;
  o.model.directory = at("base");
  o.output = at("new");
  CHECK(o.problems().empty());
  for (const char* run : {"new.run", "runs/new", "new2", "new/../run"}) {
    o.run_directory = at(run);
    CHECK(o.problems().empty());
  }
  for (const char* run : {"new", "new/", "new/run", "other/../new/run"}) {
    o.run_directory = at(run);
    check_problem(o.problems(), {"Output/Run Directory is", at(run).c_str(), "beside it"});
  }
  for (const char* output : {"base", "base/", "link", "./base/../base", ""}) {  // "": its parent
    o.output = at(output);
    o.run_directory = scratch.path().string() + ".run";
    check_problem(o.problems(), {"Output/Directory is", "Model/Directory", "another"});
  }
  RewardModelOptions reward;
  reward.data.files = {"pairs.jsonl"};
  reward.model.directory = reward.output = at("base");
  check_problem(reward.problems(), {"Output/Directory is", "Model/Directory"});
  reward.output = at("new");
  CHECK(reward.problems().empty());
}

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
