// SPDX-License-Identifier: Apache-2.0
#include "kernels/copy.hpp"

#include "kernels/CheckOp.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("values move to where they are sent, and nothing else changes", "[copy]") {
  check_compare(copy_op());
}

TEST_CASE("rows that are named several times are added in ascending order", "[copy]") {
  Floats y = {1e8f, 1.0f};
  const Floats x = {1.0f, 2.0f, -1e8f, 3.0f, 5.0f, 7.0f};
  const Staged<std::int32_t> rows = {4, 4, 9};  // the last one is not among the rows of y
  add_rows(Exec(), view(y, 1, 2), const_view(x, 3, 2), const_view(rows), 4);
  Exec().fence();
  CHECK(y == Floats{(1e8f + 1.0f) - 1e8f, 6.0f});
}

TEST_CASE("the host reads its own memory where it is, and a device's from a copy", "[copy]") {
  const Floats x = random_floats(100, 1);
  std::vector<float> buffer;
  const auto values = host_values(Exec(), const_view(x), buffer);
  CHECK(std::equal(values.begin(), values.end(), x.begin(), x.end()));
  CHECK((values.data() == x.data()) == kOnHost);
  CHECK(buffer.empty() == kOnHost);
}
