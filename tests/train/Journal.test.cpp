// SPDX-License-Identifier: Apache-2.0
#include "train/Journal.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "comm/Collectives.hpp"
#include "support/CapturedLog.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
namespace fs = std::filesystem;

namespace {

RolloutRecord record(int prompt, int response) {
  RolloutRecord r;
  r.id = {prompt, 2};
  r.prompt_length = 3;
  for (int i = 0; i < 3 + response; ++i) r.tokens.push_back(10 * prompt + i);
  r.log_probs.assign(static_cast<std::size_t>(response), -0.5f);
  r.finish = FinishReason::kAbort;
  return r;
}

}  // namespace

TEST_CASE("what ranks have written of an iteration is read on all of them, until it is finished") {
  const TestRanks world;
  const Scratch scratch;
  const RunDirectory run(scratch.path());
  const Journal journal(run, true, world.ranks);
  CHECK(journal.read(4).empty());
  const std::vector<RolloutRecord> mine{record(world.ranks.rank(), 5 + world.ranks.rank())};
  journal.write(4, mine);
  CHECK(journal.read(3).empty());
  const std::vector<RolloutRecord> known = journal.read(4);
  REQUIRE(std::ssize(known) == world_size());
  for (int r = 0; r < world_size(); ++r) {
    CHECK(known[r].id == ResponseId{r, 2});
    CHECK(known[r].prompt_length == 3);
    CHECK(known[r].tokens == record(r, 5 + r).tokens);
  }
  barrier(world.ranks.world());
  journal.remove(4);
  barrier(world.ranks.world());
  CHECK(journal.read(4).empty());
  // One that is off touches nothing.
  const Journal off(run, false, world.ranks);
  off.write(5, mine);
  CHECK(off.read(5).empty());
  CHECK_FALSE(fs::exists(run.journal(5)));
}

TEST_CASE("a damaged journal is left out, with a warning") {
  const TestRanks world;
  const Scratch scratch;
  const RunDirectory run(scratch.path());
  const Journal journal(run, true, world.ranks);
  if (world.ranks.rank() == 0) {
    fs::create_directories(run.journal());
    spill(run.journal(2), "no HDF5 file");
  }
  barrier(world.ranks.world());
  const std::string log = logged_by([&] { CHECK(journal.read(2).empty()); });
  if (world.ranks.rank() == 0) CHECK(log.find("is not used") != std::string::npos);
}
