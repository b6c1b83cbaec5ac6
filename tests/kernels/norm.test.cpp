// SPDX-License-Identifier: Apache-2.0
#include "kernels/norm.hpp"

#include <cmath>

#include "kernels/CheckOp.hpp"
#include "kernels/reference/norm.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("rmsnorm equals the canonical lanes and is close to the reference", "[norm]") {
  check_compare(norm_op());
}

TEST_CASE("gradients of rmsnorm", "[norm]") {
  check_gradient(norm_op());
}

TEST_CASE("reference rmsnorm by hand", "[norm][reference]") {
  // The mean square is 4.
  const reference::Matrix x(1, 4, {2, 2, -2, 2});
  CHECK(reference::rmsnorm(x, {1, 2, 1, 1}, 0.0).data == reference::Vector{1, 2, -1, 1});
  // Along x itself the output does not change.
  const reference::NormGradient g = reference::rmsnorm_backward(x, x, {1, 1, 1, 1}, 0.0);
  for (const double value : g.dx.data) CHECK(std::abs(value) < 1e-12);
  CHECK(std::abs(g.dgain[0] - 2) < 1e-12);
}

#ifdef TAPER_ASSERTIONS
TEST_CASE("gradients of other sizes are refused before the launch", "[norm]") {
  const NormShape shape{3, 4, 1e-5f};
  Floats x(8), more(12), inv(2), gain(3), wide(4);
  const auto run = [&](Floats& dgain, const Floats& dy, const Floats& inverse) {
    rmsnorm_backward(Exec(), view(x), view(dgain), const_view(dy), const_view(x),
                     const_view(inverse), const_view(gain), shape, Accumulate::kNo);
  };
  CHECK_NOTHROW(run(gain, x, inv));
  CHECK_THROWS(run(wide, x, inv));
  CHECK_THROWS(run(gain, more, inv));
  CHECK_THROWS(run(gain, x, gain));
}
#endif
