// SPDX-License-Identifier: Apache-2.0
#include "io/MpiCall.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <new>

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

TEST_CASE("what one rank throws all throw, with its code and advice") {
  const int last = detail::comm_size(MPI_COMM_WORLD) - 1;
  const auto fail_last = [&](const std::exception* error) {
    return error_of([&] {
      detail::do_together(MPI_COMM_WORLD, [&] {
        if (detail::comm_rank(MPI_COMM_WORLD) != last) return;
        if (error == nullptr) throw std::bad_alloc();
        if (const auto* ours = dynamic_cast<const Error*>(error)) throw *ours;
        throw std::filesystem::filesystem_error("no room", std::error_code());
      });
    });
  };
  const std::string rank = " (rank " + std::to_string(last) + ")";
  const Error input(ExitCode::kBadInput, "the name is taken"), stop(ExitCode::kStoppedEarly, "");
  CHECK(fail_last(&input).what() == "the name is taken" + rank);
  CHECK(fail_last(&input).code() == ExitCode::kBadInput);
  CHECK(fail_last(&stop).what() == "unknown error" + rank);
  CHECK(fail_last(&stop).code() == ExitCode::kStoppedEarly);
  CHECK_THAT(fail_last(nullptr).what(), ContainsSubstring("out of memory ("));
  CHECK(fail_last(nullptr).code() == ExitCode::kFailure);
  const std::exception other;
  CHECK_THAT(fail_last(&other).what(),
             ContainsSubstring("no room") && ContainsSubstring("(check path, permissions"));
}

TEST_CASE("what no rank throws none throws") {
  CHECK_NOTHROW(detail::do_together(MPI_COMM_WORLD, [] {}));
}
