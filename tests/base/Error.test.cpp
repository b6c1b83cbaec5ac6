// SPDX-License-Identifier: Apache-2.0
#include "base/Error.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("VALIDATE streams its message and says bad input") {
  const int value = 3;
  try {
    TAPER_VALIDATE(value > 4, "value is " << value << " (must exceed 4); raise it");
    FAIL("no exception");
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::kBadInput);
    CHECK(std::string(e.what()) == "value is 3 (must exceed 4); raise it");
  }
  CHECK_NOTHROW([&] { TAPER_VALIDATE(value > 2, "never"); }());
}

TEST_CASE("INSIST says that Taper is to blame, not the input") {
  const int value = 3;
  try {
    TAPER_INSIST(value > 4, "value is " << value);
    FAIL("no exception");
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::kFailure);
    CHECK(std::string(e.what()) == "value is 3 (a bug in Taper; please report it)");
  }
  CHECK_NOTHROW([&] { TAPER_INSIST(value > 2, "never"); }());
}
