// SPDX-License-Identifier: Apache-2.0
//
// Launchers on a GPU against those on the host. Both compute in one order without contraction; the
// tolerance leaves room for denormals, which only the host flushes.
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "kernels/DeviceCase.hpp"

using namespace taper;
using namespace taper::test;

namespace {

constexpr float kTolerance = 1e-6f;  // of the largest value

void require_close(const Results& got, const Results& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    float largest = 0.0f, difference = 0.0f;
    for (std::size_t k = 0; k < wanted[i].second.size(); ++k) {
      largest = std::max(largest, std::abs(wanted[i].second[k]));
      difference = std::max(difference, std::abs(got[i].second[k] - wanted[i].second[k]));
    }
    INFO(got[i].first << ": difference " << difference << ", largest value " << largest);
    CHECK(difference <= kTolerance * largest);
  }
}

}  // namespace

TEST_CASE("rmsnorm on the GPU", "[device][gpu]") {
  flush_denormals();
  for (const NormCase& c : kNormCases)
    require_close(run_norm<Launchers>(Kokkos::Cuda(), c.vectors, c.width, c.stride),
                  run_norm<Launchers>(HostExec(), c.vectors, c.width, c.stride));
}

TEST_CASE("activations on the GPU", "[device][gpu]") {
  flush_denormals();
  for (const auto& [rows, columns] : kActivationCases)
    require_close(run_activation<Launchers>(Kokkos::Cuda(), rows, columns),
                  run_activation<Launchers>(HostExec(), rows, columns));
}
