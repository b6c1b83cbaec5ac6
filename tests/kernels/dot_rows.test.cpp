// SPDX-License-Identifier: Apache-2.0
#include "kernels/dot_rows.hpp"

#include "kernels/CheckOp.hpp"
#include "kernels/reference/dot_rows.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("dot products of rows and their gradients have the canonical order", "[dot_rows]") {
  check_compare(dot_rows_op());
}

TEST_CASE("gradients of dot products of rows", "[dot_rows]") {
  check_gradient(dot_rows_op());
}

TEST_CASE("reference dot products of rows by hand", "[dot_rows][reference]") {
  const reference::Matrix x(2, 2, {1, 2, 3, 4});
  CHECK(reference::dot_rows(x, {5, 6}) == reference::Vector{17, 39});
  const auto g = reference::dot_rows_backward({1, 10}, x, {5, 6});
  CHECK(g.dx.data == reference::Vector{5, 6, 50, 60});
  CHECK(g.dw == reference::Vector{31, 42});
}
