// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation.hpp"

#include <cmath>

#include "kernels/CheckOp.hpp"
#include "kernels/canonical/lanes.hpp"
#include "kernels/reference/activation.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("activations equal the canonical ones and are close to the reference", "[activation]") {
  check_compare(activation_op());
}

TEST_CASE("gradients of swiglu", "[activation]") {
  check_gradient(activation_op());
}

TEST_CASE("reference swiglu by hand", "[activation][reference]") {
  CHECK(reference::swiglu(0.0, 5.0) == 0.0);
  CHECK(std::abs(reference::swiglu(std::log(3.0), 2.0) - 1.5 * std::log(3.0)) <
        1e-12);                                                   // sigmoid is 3/4
  CHECK(reference::swiglu_backward(2.0, 0.0, 5.0).dgate == 5.0);  // slope 1/2 at 0
}

TEST_CASE("the exponential is within two ulp and exact at its ends", "[activation][canonical]") {
  flush_denormals();
  double worst = 0.0;
  for (float x = -87.0f; x < 88.0f; x += 0.00317f) {
    const double right = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(canonical::exp(x) - right) / right);
  }
  CHECK(worst < 2 * 0x1p-23);
  CHECK(canonical::exp(0.0f) == 1.0f);
  CHECK(canonical::exp(-87.3f) == 0.0f);
  CHECK(canonical::exp(-INFINITY) == 0.0f);
  CHECK(canonical::exp(1e30f) == canonical::exp(88.0f));
  CHECK(std::isnan(canonical::exp(NAN)));
}

TEST_CASE("lanes are summed by halves", "[activation][canonical]") {
  // 2^24 + 1 + 1 depends on the order: the lanes 0, 8 and 4 meet as (0 + 8) + 4.
  canonical::Lanes lanes{};
  lanes[0] = 0x1p24f;
  lanes[8] = lanes[4] = 1.0f;
  CHECK(canonical::sum_lanes(lanes) == 0x1p24f);
  lanes[8] = 0.0f;
  lanes[12] = 1.0f;  // (0 + 8) + (4 + 12)
  CHECK(canonical::sum_lanes(lanes) == 0x1p24f + 2.0f);
}

#ifdef TAPER_ASSERTIONS
TEST_CASE("gradients of other sizes are refused before the launch", "[activation]") {
  Floats a(256), b(384);
  CHECK_NOTHROW(
      swiglu_backward(Exec(), view(a, 2, 128), const_view(b, 2, 64), const_view(a, 2, 128)));
  CHECK_THROWS(
      swiglu_backward(Exec(), view(a, 2, 128), const_view(b, 3, 64), const_view(a, 2, 128)));
  CHECK_THROWS(
      swiglu_backward(Exec(), view(a, 2, 64), const_view(b, 2, 64), const_view(a, 2, 128)));
  CHECK_THROWS(add(Exec(), view(b), const_view(a), const_view(b)));
  CHECK_THROWS(accumulate_bias(Exec(), view(a), const_view(b, 3, 128)));
}
#endif
