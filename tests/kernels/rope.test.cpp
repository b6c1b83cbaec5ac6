// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope.hpp"

#include "kernels/CheckOp.hpp"
#include "kernels/reference/rope.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("rope equals the canonical rotation and is close to the reference", "[rope]") {
  check_compare(rope_op());
}

TEST_CASE("gradients of rope", "[rope]") {
  check_gradient(rope_op());
}

TEST_CASE("reference rotation by hand", "[rope][reference]") {
  // A quarter turn takes (1, 0) to (0, 1); pairs are (0, 2) and (1, 3).
  const reference::Matrix y = reference::rotate({1, 4, {1, 5, 0, 6}}, {1}, {M_PI / 2, 0.0});
  const reference::Vector wanted = {0, 5, 1, 6};
  for (int i = 0; i < 4; ++i) CHECK(std::abs(y.data[i] - wanted[i]) < 1e-12);
}

TEST_CASE("reference rope frequencies", "[rope][reference]") {
  const reference::Vector plain = reference::rope_frequencies(4, 100.0);
  CHECK(plain == reference::Vector{1.0, 0.1});
  CHECK(reference::rope_frequencies_linear(4, 100.0, 2.0) == reference::Vector{0.5, 0.05});
  // Context 200: pair 0 turns 31.8 times (kept above 4), pair 1 turns 3.18 times (between 1 and 4:
  // mixed).
  const reference::Vector mixed =
      reference::rope_frequencies_llama3(4, 100.0, 8.0, 1.0, 4.0, 200.0);
  CHECK(mixed[0] == 1.0);
  const double keep = (20.0 / (2 * M_PI) - 1.0) / 3.0;
  CHECK(std::abs(mixed[1] - (keep * 0.1 + (1 - keep) * 0.0125)) < 1e-12);
  // Context 20: pair 1 turns 0.318 times and is stretched whole.
  CHECK(reference::rope_frequencies_llama3(4, 100.0, 8.0, 1.0, 4.0, 20.0)[1] == 0.1 / 8.0);
}
