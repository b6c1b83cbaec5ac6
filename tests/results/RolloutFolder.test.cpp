// SPDX-License-Identifier: Apache-2.0
#include "results/RolloutFolder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "support/Scratch.hpp"

using namespace taper;
using taper::test::Scratch;
using taper::test::spill;
namespace fs = std::filesystem;

TEST_CASE("the file of an iteration has six digits, or as many as it needs") {
  CHECK(rollout_path("rollouts", 12) == fs::path("rollouts/iter_000012.h5"));
  CHECK(rollout_path("rollouts", 1234567) == fs::path("rollouts/iter_1234567.h5"));
}

TEST_CASE("rollouts of later iterations go, and nothing else") {
  const Scratch scratch;
  const std::set<std::string> stay{"iter_000002.h5",     "iter_000009.h5",  "iter_000009.h5.part",
                                   "notes.txt",          "iter_000011",     "iter_11.h5",
                                   "iter_000011.h5.bak", "iter_-000011.h5", "zebra.h5"};
  const std::set<std::string> go{"iter_000010.h5", "iter_000010.h5.part", "iter_1000000.h5"};
  for (const auto* names : {&stay, &go})
    for (const auto& name : *names) spill(scratch / name, "");
  fs::create_directories(scratch / "plots/inner");
  fs::create_directories(scratch / "iter_000012.h5");  // a folder of that name is not ours
  remove_rollouts_after(scratch.path(), 9);
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(scratch.path()))
    if (entry.is_regular_file()) left.insert(entry.path().filename().string());
  CHECK(left == stay);
  CHECK(fs::exists(scratch / "plots/inner"));
  CHECK(fs::exists(scratch / "iter_000012.h5"));
}

TEST_CASE("rollout files are listed in the order of their iterations") {
  const Scratch scratch;
  CHECK(rollout_files(scratch / "nothing").empty());
  for (const char* name : {"iter_1000000.h5", "iter_000010.h5", "iter_999999.h5", "iter_000002.h5",
                           "iter_000003.h5.part", "notes.h5"})
    spill(scratch / name, "");
  std::vector<std::string> names;
  for (const auto& path : rollout_files(scratch.path())) names.push_back(path.filename());
  CHECK(names == std::vector<std::string>{"iter_000002.h5", "iter_000010.h5", "iter_999999.h5",
                                          "iter_1000000.h5"});
}
