// SPDX-License-Identifier: Apache-2.0
#include "kernels/Staging.hpp"

#include <catch2/catch_test_macros.hpp>
#include <numeric>

#include "kernels/copy.hpp"

using namespace taper;

TEST_CASE("kernels read and write staged arrays") {
  Staged<std::int32_t> rows = staged(std::vector<std::int32_t>{2, 0});
  Staged<float> from(12), to(8, -1.0f);
  std::iota(from.begin(), from.end(), 0.0f);
  const Exec exec;
  gather_rows(exec, FloatMatrix(to.data(), 2, 4), ConstFloatMatrix(from.data(), 3, 4),
              staging_view(rows));
  exec.fence();
  CHECK(to == Staged<float>{8.0f, 9.0f, 10.0f, 11.0f, 0.0f, 1.0f, 2.0f, 3.0f});
}

TEST_CASE("values that lie anywhere are staged for a kernel") {
  const std::vector<std::int32_t> rows{1};
  Staged<float> from{1.0f, 2.0f, 3.0f, 4.0f}, to(2);
  const Exec exec;
  {
    const StagedInput<std::int32_t> here(rows);  // may end before the kernel does
    CHECK(here.view().size() == 1);
    gather_rows(exec, FloatMatrix(to.data(), 1, 2), ConstFloatMatrix(from.data(), 2, 2),
                here.view());
  }
  exec.fence();
  CHECK(to == Staged<float>{3.0f, 4.0f});
}
