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

TEST_CASE("the first of several problems is told, and where it is") {
  CHECK_NOTHROW(require_no_problems({}, "planner"));
  const auto check = [](const std::string& where, ExitCode code, const std::string& text) {
    try {
      require_no_problems({"Grid is 0", "Steps is 0"}, where, code);
      FAIL("no exception");
    } catch (const Error& e) {
      CHECK(e.code() == code);
      CHECK(std::string(e.what()) == text);
    }
  };
  check("planner", ExitCode::kBadInput, "planner: Grid is 0");
  check("", ExitCode::kFailure, "Grid is 0");
}
