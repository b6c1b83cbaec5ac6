// SPDX-License-Identifier: Apache-2.0
#include "comm/HostBuffer.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <deque>
#include <string>
#include <vector>

using namespace taper;

TEST_CASE("spans, vectors, arrays and Views are host buffers") {
  std::vector<float> vector(3);
  CHECK(host_span(vector).data() == vector.data());
  const std::vector<float>& constant = vector;
  static_assert(std::is_same_v<decltype(host_span(constant)), std::span<const float>>);
  std::array<int, 4> array{};
  CHECK(host_span(array).size() == 4);
  const std::span<const int> span(array);
  CHECK(host_span(span).data() == array.data());
  const Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace> view("taper::test", 3, 5);
  CHECK(host_span(view).size() == 15);
  CHECK(host_span(view).data() == view.data());
  const Kokkos::View<const double**, Kokkos::LayoutRight, Kokkos::HostSpace> read_only = view;
  static_assert(std::is_same_v<decltype(host_span(read_only)), std::span<const double>>);
}

TEST_CASE("other things are not") {
  static_assert(HostBuffer<std::vector<float>>);
  static_assert(HostBuffer<std::vector<float>&>);
  static_assert(HostBuffer<const std::span<float>>);
  static_assert(!HostBuffer<std::deque<float>>);
  static_assert(!HostBuffer<std::vector<std::string>>);
  static_assert(!HostBuffer<float>);
}

#ifdef TAPER_ASSERTIONS
TEST_CASE("a strided View is refused") {
  const Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace> view("taper::test", 3, 5);
  const auto column = Kokkos::subview(view, Kokkos::ALL(), 2);
  CHECK_THROWS_AS(host_span(column), Error);
}
#endif
