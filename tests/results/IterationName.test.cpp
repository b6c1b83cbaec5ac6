// SPDX-License-Identifier: Apache-2.0
#include "results/IterationName.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/Scratch.hpp"

using namespace taper;

TEST_CASE("names of iterations are read back, also beyond six digits") {
  for (const std::int64_t iteration : {0, 7, 999'999, 1'000'000, 123'456'789}) {
    INFO(iteration_name(iteration));
    CHECK(iteration_of_name(iteration_name(iteration)) == iteration);
  }
  CHECK(iteration_name(12) == "iter_000012");
  CHECK(iteration_name(1'000'000) == "iter_1000000");
}

TEST_CASE("other names are none of an iteration") {
  for (const char* name :
       {"", "iter_", "iter_12", "iter_0000012", "iter_-00012", "iter_+00012", "iter_000012.old",
        "iter_000012 ", "iter_00001x", "Iter_000012", "iter_99999999999999999999"}) {
    INFO(name);
    CHECK(!iteration_of_name(name));
  }
}

TEST_CASE("what belongs to iterations is found by ending and type, in their order") {
  namespace fs = std::filesystem;
  const test::Scratch scratch;
  CHECK(iteration_entries(scratch / "nothing", "", fs::file_type::directory).empty());
  for (const char* name :
       {"iter_1000000", "iter_000002", "iter_999999", "iter_000003.old", "notes"})
    fs::create_directories(scratch / name);
  test::spill(scratch / "iter_000004", "");
  test::spill(scratch / "iter_000004.old", "");
  const auto folders = [&](const char* ending) {
    std::vector<std::int64_t> iterations;
    for (const auto& entry : iteration_entries(scratch.path(), ending, fs::file_type::directory))
      iterations.push_back(entry.iteration);
    return iterations;
  };
  CHECK(folders("") == std::vector<std::int64_t>{2, 999'999, 1'000'000});
  CHECK(folders(".old") == std::vector<std::int64_t>{3});
  const auto files = iteration_entries(scratch.path(), ".old", fs::file_type::regular);
  REQUIRE(files.size() == 1);
  CHECK(files.front().path == scratch / "iter_000004.old");
}
