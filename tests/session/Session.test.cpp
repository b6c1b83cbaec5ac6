// SPDX-License-Identifier: Apache-2.0
//
// A program of its own: a session starts MPI and Kokkos, which the main of other tests has done.
#include "session/Session.hpp"

#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <string>

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

taper::Session* the_session = nullptr;

}  // namespace

TEST_CASE("a session starts MPI and Kokkos with the threads that it is given") {
  int size = 0, rank = -1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  CHECK(the_session->size() == size);
  CHECK(the_session->rank() == rank);
  REQUIRE(Kokkos::is_initialized());
  if (const char* threads = std::getenv("OMP_NUM_THREADS"))
    CHECK(host_threads() == std::atoi(threads));
}

TEST_CASE("a degree that does not divide the ranks is refused") {
  const int size = the_session->size();
  const std::string problem = "tensor-parallel degree " + std::to_string(size + 1) + " on " +
                              std::to_string(size) + " ranks";
  CHECK_THROWS_MATCHES(the_session->start({size + 1}, 60.0, "."), Error,
                       MessageMatches(ContainsSubstring(problem)));
}

TEST_CASE("degrees that differ between ranks are refused by all") {
  const int size = the_session->size();
  if (size < 2) return;
  const int mine = the_session->rank() == 1 ? 1 : size;
  CHECK_THROWS_MATCHES(the_session->start({mine}, 60.0, "."), Error,
                       MessageMatches(ContainsSubstring("different tensor-parallel degrees")));
}

TEST_CASE("starting gives the groups of the degrees, and the places of all ranks") {
  const int size = the_session->size();
  const Ranks& ranks = the_session->start({size}, 60.0, ".");
  CHECK(ranks.size() == size);
  CHECK(ranks.rank() == the_session->rank());
  CHECK(ranks.groups.tp_group(size).size() == size);
  CHECK(ranks.groups.tp_group(1).size() == 1);
  CHECK(ranks.groups.dp_group(1).size() == size);
  const HostMap& map = ranks.hosts;
  REQUIRE(static_cast<int>(map.ranks.size()) == size);
  const std::string& host = map.ranks[static_cast<std::size_t>(ranks.rank())].host;
  CHECK(ranks.ranks_on_host() ==
        std::count_if(map.ranks.begin(), map.ranks.end(),
                      [&](const auto& place) { return place.host == host; }));
}

TEST_CASE("finishing returns the code for the program") {
  CHECK(the_session->finish(ExitCode::kBadInput) == 2);
  CHECK(the_session->finish(ExitCode::kDone) == 0);
}

int main(int argc, char** argv) {
  taper::Session session(argc, argv);
  the_session = &session;
  int failed = Catch::Session().run(argc, argv), failed_anywhere = 0;
  MPI_Allreduce(&failed, &failed_anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return session.finish(failed_anywhere == 0 ? ExitCode::kDone : ExitCode::kFailure);
}
