// SPDX-License-Identifier: Apache-2.0
#include "base/Log.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/CapturedLog.hpp"

using namespace taper;

namespace {

// What `action` writes to stderr as that rank of so many.
template <class Action>
std::string logged(int rank, int ranks, const Action& action) {
  const int before = log_rank();
  const std::string text = test::logged_by([&] {
    set_log_rank(rank, ranks);
    action();
  });
  set_log_rank(before, 1);  // this test has one rank
  return text;
}

void log_all() {
  TAPER_INFO("step " << 3);
  TAPER_WARN("slow: " << 0.5 << " s");
  TAPER_ERROR("rank is " << log_rank());
}

}  // namespace

TEST_CASE("of several ranks, info comes from rank 0, and the others say who they are") {
  CHECK(logged(0, 2, log_all) ==
        "step 3\n"
        "[rank 0] warning: slow: 0.5 s\n"
        "[rank 0] error: rank is 0\n");
  CHECK(logged(1, 2, log_all) ==
        "[rank 1] warning: slow: 0.5 s\n"
        "[rank 1] error: rank is 1\n");
}

TEST_CASE("a single rank does not name itself") {
  CHECK(logged(0, 1, log_all) ==
        "step 3\n"
        "warning: slow: 0.5 s\n"
        "error: rank is 0\n");
}

TEST_CASE("what a terminal would obey is logged as escapes") {
  CHECK(logged(0, 1, [] { TAPER_INFO("a\x1b[31m, \xff"); }) == "a\\x1b[31m, \\xff\n");
}
