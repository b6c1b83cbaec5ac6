// SPDX-License-Identifier: Apache-2.0
#include "train/CallTable.hpp"

#include <mpi.h>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "io/Hdf5File.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Approx;

TEST_CASE("a call lasts from its first rank's begin to its last one's end") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const int ranks = world.size(), me = world.rank();
  const ModelLayout all{0, {1, ranks}}, last{ranks - 1, {1, 1}};
  // Rank r is r / 10 later; the last one scores as well, twice.
  const double late = 0.1 * me;
  std::vector<CallSpan> mine{{"gen", "policy", all, 0.5 + late, 1.5 + late, late}};
  for (const double begin : {3.0, 5.0})
    if (me == ranks - 1) mine.push_back({"ref", "reference", last, begin, begin + 0.25});
  mine.push_back({"update_actor", "policy", all, 7.0, 8.0 + late});
  // Models in different layouts on the same ranks are different calls.
  mine.push_back({"reward_model", "first", all, 9.0, 9.5});
  mine.push_back({"reward_model", "second", {0, {ranks, 1}}, 10.0, 10.5});
  const std::vector<DoneCall> calls = gather_calls(world, mine);
  const Scratch scratch;
  if (me != 0) {
    CHECK(calls.empty());
    return;
  }
  REQUIRE(calls.size() == 6);
  const double latest = 0.1 * (ranks - 1);
  CHECK(calls[0].name == "gen");
  CHECK(calls[0].begin_s == Approx(0.5));
  CHECK(calls[0].end_s == Approx(1.5 + latest));
  CHECK(calls[0].busy_s == Approx(1.0));
  CHECK(calls[0].wait_s == Approx(latest / 2));
  CHECK(calls[1].name == "ref");
  CHECK(calls[1].layout == last);
  CHECK(calls[1].begin_s == Approx(3.0));
  CHECK(calls[2].begin_s == Approx(5.0));
  CHECK(calls[2].busy_s == Approx(0.25));
  CHECK(calls[3].name == "update_actor");
  CHECK(calls[3].busy_s == Approx(1.0 + latest / 2));
  CHECK(calls[4].model == "first");
  CHECK(calls[5].model == "second");
  CHECK(calls[5].busy_s == Approx(0.5));

  RunFile file(scratch / "run.h5");
  add_calls(file, 1, calls);
  add_calls(file, 2, {});
  file.save();
  const Hdf5File read = Hdf5File::open_read(scratch / "run.h5");
  CHECK(read.read_strings("/calls/call") == std::vector<std::string>{"gen", "ref", "ref",
                                                                     "update_actor", "reward_model",
                                                                     "reward_model"});
  CHECK(read.read<std::int64_t>("/calls/first_rank").values ==
        std::vector<std::int64_t>{0, ranks - 1, ranks - 1, 0, 0, 0});
  CHECK(read.read<std::int64_t>("/calls/dp").values ==
        std::vector<std::int64_t>{ranks, 1, 1, ranks, ranks, 1});
  CHECK(read.read_strings("/calls/model").front() == "policy");
  CHECK(read.read<double>("/calls/start_s").values.back() == Approx(10.0));
}
