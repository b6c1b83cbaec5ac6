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
  const std::vector<std::int32_t> rows = {4, 4, 9};  // the last one is not among the rows of y
  add_rows(HostExec(), view(y, 1, 2), const_view(x, 3, 2), const_view(rows), 4);
  CHECK(y == Floats{(1e8f + 1.0f) - 1e8f, 6.0f});
}

TEST_CASE("the host reads memory that it can access where it is", "[copy]") {
  const Floats x = random_floats(100, 1);
  Floats buffer;
  const auto values = host_values(HostExec(), const_view(x), buffer);
  CHECK(values.data() == x.data());
  CHECK(values.size() == x.size());
  CHECK(buffer.empty());
}
