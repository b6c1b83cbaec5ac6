// SPDX-License-Identifier: Apache-2.0
#include "driver/RunConfig.hpp"

#include <catch2/catch_test_macros.hpp>

#include "base/Error.hpp"
#include "io/RunFile.hpp"
#include "support/Scratch.hpp"

using namespace taper;

TEST_CASE("a run file tells the parameters of its run, as far as this version knows them") {
  const test::Scratch scratch;
  const auto path = scratch / "run.h5";
  RunFile run(path);
  run.set_config("Checkpoint:\n  Every: 3\n  Of Another Version: 1\nTraining:\n  Iterations: 7\n");
  run.save();
  const RunOptions options = read_run_options(path);
  CHECK(options.checkpoint.every == 3);
  CHECK(options.training.iterations == 7);
  CHECK(options.checkpoint.keep == RunOptions().checkpoint.keep);
}

TEST_CASE("a run file that tells nothing is an error") {
  const test::Scratch scratch;
  CHECK_THROWS_AS(read_run_options(scratch / "none.h5"), Error);
  test::spill(scratch / "damaged.h5", "no HDF5");
  CHECK_THROWS_AS(read_run_options(scratch / "damaged.h5"), Error);
  RunFile run(scratch / "run.h5");
  run.set_config("no parameters");
  run.save();
  CHECK_THROWS_AS(read_run_options(scratch / "run.h5"), Error);
}
