// SPDX-License-Identifier: Apache-2.0
#include "io/detail/MpiCall.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Log.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;

namespace {

// What an action throws, with its code.
template <class Action>
Error error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  return {ExitCode::kDone, ""};
}

}  // namespace

TEST_CASE("a failing call throws with its name, MPI's text and the rank") {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const Error error = error_of([] {
    int value = 0;
    TAPER_IO_MPI_CALL(MPI_Bcast(&value, 1, MPI_INT, 4711, MPI_COMM_WORLD));
  });
  CHECK(error.code() == ExitCode::kFailure);
  CHECK_THAT(error.what(),
             ContainsSubstring("MPI_Bcast failed on rank " + std::to_string(log_rank())));
  CHECK_THAT(error.what(), ContainsSubstring("root"));
}
