// SPDX-License-Identifier: Apache-2.0
#include "run/OutputLock.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
namespace fs = std::filesystem;

TEST_CASE("all ranks of the second job learn who has the output") {
  const Scratch scratch;
  TestRanks world;
  const fs::path file = scratch / "run.lock";
  {
    const OutputLock first(world.ranks, "Output/Directory x", file);
    CHECK(fs::exists(file));
    CHECK_THROWS_MATCHES(OutputLock::require_free(world.ranks, "Output/Directory x", file), Error,
                         MessageMatches(ContainsSubstring("Output/Directory x is in use")));
    CHECK_THROWS_MATCHES(
        OutputLock(world.ranks, "Output/Directory x", file), Error,
        MessageMatches(ContainsSubstring("Output/Directory x is in use") &&
                       ContainsSubstring("run.lock") && ContainsSubstring("process ")));
    barrier(world.ranks.world());
  }
  barrier(world.ranks.world());
  CHECK(!fs::exists(file));
  CHECK_NOTHROW(OutputLock::require_free(world.ranks, "x", file));
  CHECK_NOTHROW(OutputLock::require_free(world.ranks, "x", scratch / "nowhere/run.lock"));
  CHECK(!fs::exists(file));
  barrier(world.ranks.world());  // rank 0 makes it again
  CHECK_NOTHROW(OutputLock(world.ranks, "Output/Directory x", file));
  barrier(world.ranks.world());
}

TEST_CASE("a directory that cannot be written is an error of all ranks") {
  TestRanks world;
  CHECK_THROWS_AS(OutputLock(world.ranks, "x", "/proc/nowhere/run.lock"), Error);
}

TEST_CASE("an error leaves the lock of several ranks behind: the others may still write") {
  const Scratch scratch;
  TestRanks world;
  const fs::path file = scratch / "run.lock";
  for (const bool fails : {false, true}) {
    try {
      const OutputLock lock(world.ranks, "x", file);
      barrier(world.ranks.world());
      if (fails) throw Error(ExitCode::kFailure, "of one rank");
    } catch (const Error&) {
    }
    barrier(world.ranks.world());
    CHECK(fs::exists(file) == (fails && world_size() > 1));
    barrier(world.ranks.world());
  }
}

TEST_CASE("a model directory has its lock beside it") {
  CHECK(OutputLock::of_model("a/model") == "a/model.lock");
  CHECK(OutputLock::of_model("a/model/") == "a/model.lock");
}
