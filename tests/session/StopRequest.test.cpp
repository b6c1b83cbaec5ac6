// SPDX-License-Identifier: Apache-2.0
#include "session/StopRequest.hpp"

#include <mpi.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <ctime>

#include "base/Error.hpp"

using namespace taper;

namespace {

// To this thread: those of MPI, older than the StopRequest of a test, would take a signal to the
// process.
void signal_myself(int signal) {
  ::raise(signal);
}

int rank_of_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

}  // namespace

TEST_CASE("a signal at one rank stops all, once they have agreed") {
  const Group world = Group::world(MPI_COMM_WORLD);
  for (int victim = 0; victim < world.size(); ++victim) {
    const StopRequest stop;
    CHECK(stop.agreed(world) == StopReason::kNone);
    if (rank_of_world() == victim) signal_myself(SIGUSR1);
    CHECK(stop.mine() == (rank_of_world() == victim ? StopReason::kUser : StopReason::kNone));
    CHECK(stop.agreed(world) == StopReason::kUser);
    if (rank_of_world() == victim) signal_myself(SIGINT);
    CHECK(stop.agreed(world) == StopReason::kInterrupt);
    CHECK(to_string(stop.agreed(world)) == "SIGINT");
    if (rank_of_world() == victim) signal_myself(SIGTERM);
    CHECK(stop.agreed(world) == StopReason::kTerminate);
    CHECK(stop.agreed(world) == StopReason::kTerminate);  // and stays so
  }
  CHECK(StopRequest().agreed(world) == StopReason::kNone);  // what came before is dealt with
}

TEST_CASE("a deadline that is over stops") {
  StopRequest stop;
  stop.set_deadline(static_cast<double>(std::time(nullptr)) + 1e6);
  CHECK(stop.mine() == StopReason::kNone);
  stop.set_deadline(static_cast<double>(std::time(nullptr)) - 1.0);
  CHECK(stop.mine() == StopReason::kDeadline);
  CHECK(to_string(stop.mine()) == "deadline");
}

TEST_CASE("a deadline that has passed stays so, as if the clock were set back behind it") {
  const Group world = Group::world(MPI_COMM_WORLD);
  StopRequest stop;
  StopAgreement agreement(&stop, world);
  const double now = static_cast<double>(std::time(nullptr));
  if (rank_of_world() == 0) stop.set_deadline(now - 1.0);
  CHECK(agreement.is_wanted_in(world));
  stop.set_deadline(now + 1e6);  // as much later as the clock is earlier
  CHECK(stop.mine() == (rank_of_world() == 0 ? StopReason::kDeadline : StopReason::kNone));
  CHECK(agreement.reached());
  CHECK(agreement.reason() == StopReason::kDeadline);
}

TEST_CASE("the deadline comes from the environment") {
  ::unsetenv("TAPER_DEADLINE");
  CHECK(deadline_of_environment() > 1e300);
  ::setenv("TAPER_DEADLINE", "1800000000", 1);
  CHECK(deadline_of_environment() == 1.8e9);
  for (const char* wrong : {"tomorrow", "12:30", "-5", "nan"}) {
    ::setenv("TAPER_DEADLINE", wrong, 1);
    CHECK_THROWS_AS(deadline_of_environment(), Error);
  }
  ::unsetenv("TAPER_DEADLINE");
}

TEST_CASE("a job stops for the first reason that was agreed on, and goes on without a request") {
  const Group world = Group::world(MPI_COMM_WORLD);
  StopAgreement never(nullptr, world);
  CHECK(!never.reached());
  CHECK(!never.is_wanted_in(world));
  const StopRequest stop;
  StopAgreement agreement(&stop, world);
  CHECK(!agreement.reached());
  if (rank_of_world() == world.size() - 1) signal_myself(SIGUSR1);
  CHECK(agreement.is_wanted_in(world));
  CHECK(agreement.reason() == StopReason::kNone);  // a group cannot speak for all
  CHECK(agreement.reached());
  if (rank_of_world() == 0) signal_myself(SIGTERM);
  CHECK(agreement.reached());
  CHECK(agreement.reason() == StopReason::kUser);
}
