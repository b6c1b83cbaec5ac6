// SPDX-License-Identifier: Apache-2.0
#include "kernels/Instructions.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "kernels/detail/HostOps.hpp"

using namespace taper;

TEST_CASE("the instructions in use are those of the kernels", "[host_ops]") {
  const HostInstructions here = host_instructions();
  CHECK(here.name == detail::host_ops().name);
  CHECK(std::ranges::count(kInstructionSets, here.name) == 1);
}
