// SPDX-License-Identifier: Apache-2.0
#include "kernels/norm.hpp"

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
  // The mean square of (3, 4, 0, 0) is 25/4.
  const reference::Matrix x(1, 4, {3, 4, 0, 0});
  CHECK(reference::rmsnorm(x, {1, 2, 1, 1}, 0.0).data == reference::Vector{1.2, 3.2, 0, 0});
  // Along x itself the output does not change.
  const reference::NormGradient g = reference::rmsnorm_backward(x, x, {1, 1, 1, 1}, 0.0);
  for (const double value : g.dx.data) CHECK(std::abs(value) < 1e-12);
  CHECK(std::abs(g.dgain[0] - 3.6) < 1e-12);
}
