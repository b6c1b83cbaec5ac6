// SPDX-License-Identifier: Apache-2.0
#include "comm/MpiCall.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "base/Error.hpp"
#include "comm/Group.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string message_of(const Group& world) {
  try {
    int value = 0;
    TAPER_MPI_CALL(MPI_Bcast(&value, 1, MPI_INT, 4711, world.comm()));
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::kFailure);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a failing call throws with its name, MPI's text and the rank") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const std::string message = message_of(world);
  CHECK_THAT(message,
             ContainsSubstring("MPI_Bcast failed on rank " + std::to_string(world.rank())));
  CHECK_THAT(message, ContainsSubstring("root"));
  CHECK_THAT(message, ContainsSubstring("MpiCall.test.cpp"));
}

TEST_CASE("a good call passes, evaluated once") {
  int calls = 0;
  const auto count = [&] {
    ++calls;
    return MPI_SUCCESS;
  };
  TAPER_MPI_CALL(count());
  CHECK(calls == 1);
}
