// SPDX-License-Identifier: Apache-2.0
//
// One rank only: what happens with more is tested by programs that must fail (Fault.cpp).
#include "session/Guard.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "base/Error.hpp"

using namespace taper;

TEST_CASE("the exit code of a body that returns is its own") {
  CHECK(run_guarded([] { return 0; }) == 0);
  CHECK(run_guarded([] { return 75; }) == 75);
}

TEST_CASE("an escaping exception becomes an exit code") {
  CHECK(run_guarded([]() -> int { throw Error(ExitCode::kBadInput, "bad input, as tested"); }) ==
        2);
  CHECK(run_guarded([]() -> int { throw Error(ExitCode::kFailure, "failure, as tested"); }) == 1);
  CHECK(run_guarded([]() -> int { throw std::out_of_range("as tested"); }) == 1);
  CHECK(run_guarded([]() -> int { throw 3; }) == 1);
}
