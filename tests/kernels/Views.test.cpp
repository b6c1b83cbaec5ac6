// SPDX-License-Identifier: Apache-2.0
#include "kernels/Views.hpp"

#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <vector>

using namespace taper;

TEST_CASE("a matrix views given memory row by row") {
  std::vector<float> memory(6);
  std::iota(memory.begin(), memory.end(), 0.0f);
  const FloatMatrix matrix = make_matrix(memory.data(), 2, 3);
  REQUIRE(matrix.extent(0) == 2);
  REQUIRE(matrix.extent(1) == 3);
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t column = 0; column < 3; ++column)
      CHECK(matrix(row, column) == memory[3 * row + column]);
  matrix(1, 0) = 7.0f;
  CHECK(memory[3] == 7.0f);
}

TEST_CASE("copies of a view, and rows of it, own nothing") {
  std::vector<float> memory(6, 1.0f);
  const FloatMatrix matrix = make_matrix(memory.data(), 3, 2);
  const ConstFloatMatrix same = matrix;
  const FloatVector row(&matrix(2, 0), matrix.extent(1));
  row(1) = 5.0f;
  CHECK(same(2, 1) == 5.0f);
  CHECK(memory.back() == 5.0f);
}

TEST_CASE("a matrix without rows keeps its columns") {
  const FloatMatrix empty = make_matrix(nullptr, 0, 4);
  CHECK(empty.extent(0) == 0);
  CHECK(empty.extent(1) == 4);
  CHECK(empty.size() == 0);
}
