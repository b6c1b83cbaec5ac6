// SPDX-License-Identifier: Apache-2.0
#include "kernels/tree_sum.hpp"

#include <catch2/catch_test_macros.hpp>

#include "kernels/canonical/product.hpp"
#include "kernels/ops/Data.hpp"
#include "shard/ReductionTree.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("partial results are added in the order of the tree") {
  flush_denormals();
  const int length = 300;
  for (const int count : {1, 2, 3, 7, 16, 100, 256}) {
    const std::vector<int> program = ReductionTree(count, 1).local_program({0, count});
    const Floats values = random_floats(std::int64_t{count} * length, count, -1e3, 1e3);
    Floats out(length);
    sum_tree(Exec(), view(out), const_view(values, count, length), program);
    Exec().fence();
    bool is_equal = true;
    for (int i = 0; i < length; ++i) {
      std::vector<float> column;
      for (int v = 0; v < count; ++v) column.push_back(values[v * length + i]);
      is_equal &= canonical::run_tree(program, column) == std::vector<float>{out[i]};
    }
    CHECK(is_equal);
  }
}
