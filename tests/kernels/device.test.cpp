// SPDX-License-Identifier: Apache-2.0
//
// The code that GPUs run, compiled for the host, where it must have the bits of the host's kernels.
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "kernels/DeviceCase.hpp"
#include "kernels/canonical/lanes.hpp"
#include "kernels/detail/activation_device.inl.hpp"
#include "kernels/detail/norm_device.inl.hpp"

using namespace taper;
using namespace taper::test;

namespace {

struct Generic {
  template <class... Args>
  static void rmsnorm(Args&&... args) {
    detail::device_rmsnorm(std::forward<Args>(args)...);
  }
  template <class... Args>
  static void rmsnorm_backward(Args&&... args) {
    detail::device_rmsnorm_backward(std::forward<Args>(args)...);
  }
  template <class... Args>
  static void swiglu(Args&&... args) {
    detail::device_swiglu(std::forward<Args>(args)...);
  }
  template <class... Args>
  static void swiglu_backward(Args&&... args) {
    detail::device_swiglu_backward(std::forward<Args>(args)...);
  }
  template <class... Args>
  static void add(Args&&... args) {
    detail::device_add(std::forward<Args>(args)...);
  }
  template <class... Args>
  static void accumulate_bias(Args&&... args) {
    detail::device_accumulate_bias(std::forward<Args>(args)...);
  }
};

void require_equal(const Results& got, const Results& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO(got[i].first);
    CHECK(got[i].second == wanted[i].second);
  }
}

}  // namespace

TEST_CASE("rmsnorm for devices has the bits of the host's", "[device]") {
  flush_denormals();
  for (const NormCase& c : kNormCases) {
    INFO(c.vectors << " vectors of " << c.width);
    const Results wanted = run_norm<Launchers>(HostExec(), c.vectors, c.width, c.stride);
    require_equal(run_norm<Generic>(HostExec(), c.vectors, c.width, c.stride), wanted);
    require_equal(run_norm<Generic>(Kokkos::Serial(), c.vectors, c.width, c.stride), wanted);
  }
}

TEST_CASE("activations for devices have the bits of the host's", "[device]") {
  flush_denormals();
  for (const auto& [rows, columns] : kActivationCases) {
    INFO(rows << " x " << columns);
    const Results wanted = run_activation<Launchers>(HostExec(), rows, columns);
    require_equal(run_activation<Generic>(HostExec(), rows, columns), wanted);
    require_equal(run_activation<Generic>(Kokkos::Serial(), rows, columns), wanted);
  }
}

TEST_CASE("the exponential for devices is the canonical one", "[device]") {
  flush_denormals();
  for (float x = -90.0f; x < 90.0f; x += 0.0137f) CHECK(detail::device_exp(x) == canonical::exp(x));
  CHECK(detail::device_exp(-INFINITY) == 0.0f);
  CHECK(std::isnan(detail::device_exp(NAN)));
}
