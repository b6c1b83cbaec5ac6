// SPDX-License-Identifier: Apache-2.0
#include "comm/HostBuffer.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <deque>
#include <string>
#include <vector>

#include "kernels/Views.hpp"

using namespace taper;

TEST_CASE("spans, vectors, arrays and views are host buffers") {
  std::vector<float> vector(3);
  CHECK(host_span(vector).data() == vector.data());
  const std::vector<float>& constant = vector;
  static_assert(std::is_same_v<decltype(host_span(constant)), std::span<const float>>);
  std::array<int, 4> array{};
  CHECK(host_span(array).size() == 4);
  const std::span<const int> span(array);
  CHECK(host_span(span).data() == array.data());
  std::vector<double> memory(15);
  const MatrixView<double, HostExec> view(memory.data(), 3, 5);
  CHECK(host_span(view).size() == 15);
  CHECK(host_span(view).data() == memory.data());
  const VectorView<double, HostExec> row(memory.data() + 5, 5);
  CHECK(host_span(row).size() == 5);
  const MatrixView<const double, HostExec> read_only = view;
  static_assert(std::is_same_v<decltype(host_span(read_only)), std::span<const double>>);
}

TEST_CASE("other things are not") {
  static_assert(HostBuffer<std::vector<float>>);
  static_assert(HostBuffer<std::vector<float>&>);
  static_assert(HostBuffer<const std::span<float>>);
  static_assert(!HostBuffer<std::deque<float>>);
  static_assert(!HostBuffer<std::vector<std::string>>);
  static_assert(!HostBuffer<float>);
  struct OtherMemory {};
  static_assert(HostBuffer<VectorView<float, HostExec>>);
  static_assert(!HostBuffer<VectorView<float, OtherMemory>>);
}
