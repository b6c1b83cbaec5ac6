// SPDX-License-Identifier: Apache-2.0
#include "kernels/gradient.hpp"

#include "kernels/CheckOp.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("kernels add their terms to fixed-point sums, rounded once", "[gradient]") {
  check_compare(gradient_op());
}

TEST_CASE("a part of a gradient is where its elements are", "[gradient]") {
  Staged<Fixed> sums(10);
  const GradientView all(sums.data(), GradientType::kFixed, 2, 5);
  CHECK(all.part(3, 4).fixed() == sums.data() + 3);
  CHECK(all.part(3, 4).size() == 4);
  CHECK(all.f32() == nullptr);
  Floats floats(10);
  const GradientView plain = view(floats, 2, 5);
  CHECK(plain.part(3, 4).f32() == floats.data() + 3);
  CHECK(plain.fixed() == nullptr);
}
