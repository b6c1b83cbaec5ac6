// SPDX-License-Identifier: Apache-2.0
#include "kernels/adamw.hpp"

#include <limits>
#include <vector>

#include "kernels/CheckOp.hpp"
#include "kernels/reference/adamw.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("adamw equals the canonical step and is close to the reference", "[adamw]") {
  check_compare(adamw_op());
}

TEST_CASE("reference adamw by hand", "[adamw][reference]") {
  // In the first step the corrected moments are g and g^2: the step is lr along the sign, after the
  // decay.
  const reference::AdamWState s =
      reference::adamw({2.0, 0.0, 0.0}, -4.0, 1, {0.1, 0.9, 0.999, 0.0, 0.5});
  CHECK(std::abs(s.parameter - (2.0 * 0.95 + 0.1)) < 1e-12);
  CHECK(std::abs(s.first + 0.4) < 1e-12);
  CHECK(std::abs(s.second - 0.016) < 1e-12);
}

TEST_CASE("a sum of squares shows what is not finite", "[adamw]") {
  Floats x(1000, 1.0f);
  std::vector<double> sum(1);
  const std::vector<std::int64_t> offsets{0, 1000};
  x[777] = std::numeric_limits<float>::quiet_NaN();
  sum_squares(Exec(), sum, view(x), offsets);
  CHECK(std::isnan(sum.front()));
  x[777] = std::numeric_limits<float>::infinity();
  sum_squares(Exec(), sum, view(x), offsets);
  CHECK(std::isinf(sum.front()));
}

#ifdef TAPER_ASSERTIONS
TEST_CASE("vectors of other lengths are refused before the launch", "[adamw]") {
  Floats eight(8), nine(9);
  const AdamWStep step{};
  CHECK_NOTHROW(adamw(Exec(), view(eight), view(eight), view(eight), view(eight), step));
  CHECK_THROWS(adamw(Exec(), view(nine), view(eight), view(eight), view(nine), step));
  CHECK_THROWS(adamw(Exec(), view(eight), view(eight), view(nine), view(eight), step));
}
#endif
