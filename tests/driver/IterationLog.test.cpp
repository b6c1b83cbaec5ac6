// SPDX-License-Identifier: Apache-2.0
#include "driver/IterationLog.hpp"

#include <catch2/catch_test_macros.hpp>

#include "io/Hdf5File.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using taper::test::Scratch;

TEST_CASE("a flush brings all iterations so far into run.h5") {
  const Scratch scratch;
  IterationLog log(scratch.path(), "config", 1, 0);
  Sample sample;
  sample.response = {1, 2};
  for (const int iteration : {1, 2, 3})  // faster than the file is written by itself
    log.add(iteration, {{"training/global_step", iteration}}, {{"gen", 1.0, 1.0, 1.0}}, {sample});
  log.flush();
  const auto file = Hdf5File::open_read(scratch / "run.h5");
  CHECK(file.dims("/timing/gen") == Dims{3, 3});
  CHECK(file.dims("/metrics/training/global_step") == Dims{3});
}
