// SPDX-License-Identifier: Apache-2.0
#include "kernels/product.hpp"

#include "kernels/CheckOp.hpp"
#include "kernels/canonical/product.hpp"
#include "kernels/reference/product.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("products equal the canonical chains and are close to the reference", "[product]") {
  check_compare(product_op());
}

TEST_CASE("gradients of products", "[product]") {
  check_gradient(product_op());
}

TEST_CASE("row-parallel products have the same bits for any number of shards", "[product]") {
  check_compare(row_parallel_op());
}

TEST_CASE("products in bf16 arithmetic equal the canonical chains of their model",
          "[product][bf16]") {
  check_compare(bf16_product_op());
}

#if !defined(TAPER_CUDA)
TEST_CASE("dot products of bf16 equal the canonical chains, too", "[product][bf16]") {
  check_compare(bf16_dot_product_op());
}
#endif

TEST_CASE("reference product by hand", "[product][reference]") {
  const reference::Matrix x(2, 3, {1, 2, 3, 4, 5, 6});
  const reference::Matrix w(2, 3, {1, 0, -1, 2, 1, 0});
  CHECK(reference::multiply(x, w).data == reference::Vector{-2, 4, -2, 13});
  CHECK(reference::multiply(x, w, {10, 20}).data == reference::Vector{8, 24, 8, 33});
  CHECK(reference::outer_product(x, x).data ==
        reference::Vector{17, 22, 27, 22, 29, 36, 27, 36, 45});
  CHECK(reference::column_sums(x) == reference::Vector{5, 7, 9});
  CHECK(reference::transpose(x).data == reference::Vector{1, 4, 2, 5, 3, 6});
}

TEST_CASE("a canonical chain rounds once per term, in order", "[product][canonical]") {
  // 1 + 2^-24 rounds to 1, so the order of the terms shows; the square of 1 + 2^-12 is exact inside
  // a fused step.
  const float tiny = 0x1p-24f, a[] = {1.0f, tiny, tiny}, ones[] = {1.0f, 1.0f, 1.0f};
  CHECK(canonical::chain(0.0f, a, 1, ones, 1, 3) == 1.0f);
  const float reversed[] = {tiny, tiny, 1.0f};
  CHECK(canonical::chain(0.0f, reversed, 1, ones, 1, 3) == 1.0f + 0x1p-23f);
  const float near_one[] = {1.0f + 0x1p-12f};
  CHECK(canonical::chain(-1.0f - 0x1p-11f, near_one, 1, near_one, 1, 1) == tiny);
}

TEST_CASE("a canonical tree adds lower and upper in the order of its program",
          "[product][canonical]") {
  CHECK(canonical::run_tree({0, 1, 0, 2}, {1, 2, 3, 4}) == std::vector<float>{10});
  CHECK(canonical::run_tree({0, 0, 1}, {1, 2, 3}) == std::vector<float>{1, 5});
  const float tiny = 0x1p-24f;
  CHECK(canonical::run_tree({0, 1, 1}, {1.0f, tiny, tiny}) == std::vector<float>{1.0f});
  CHECK(canonical::run_tree({0, 0, 2}, {1.0f, tiny, tiny}) == std::vector<float>{1.0f + 0x1p-23f});
}

TEST_CASE("packing pads columns with zeros and reads both orders", "[product]") {
  const Floats stored = {1, 2, 3, 4, 5, 6};  // 2 x 3
  const PackedWeights by_rows = pack(stored, 2, 3, WeightType::kF32, PackOrder::kRowsAreColumns);
  const PackedWeights by_columns = pack(stored, 2, 3, WeightType::kF32, PackOrder::kRowsAreInputs);
  const auto at = [](const PackedWeights& w, int k, int c) {
    return static_cast<const float*>(w.matrix.data)[k * kPanelColumns + c];
  };
  CHECK(by_rows.matrix.columns == 64);
  CHECK(by_rows.matrix.k == 3);
  CHECK(by_columns.matrix.k == 2);
  for (int k = 0; k < 3; ++k) {
    CHECK(at(by_rows, k, 0) == stored[k]);
    CHECK(at(by_rows, k, 1) == stored[3 + k]);
    for (int c = 2; c < 64; ++c) CHECK(at(by_rows, k, c) == 0.0f);
  }
  CHECK(at(by_columns, 1, 0) == 4.0f);
  CHECK(at(by_columns, 0, 2) == 3.0f);
  CHECK(at(by_columns, 1, 3) == 0.0f);
}

TEST_CASE("bf16 weights are packed without change", "[product]") {
  const Staged<bf16> stored = {to_bf16(1.5f), to_bf16(-2.0f), to_bf16(3.25f)};
  Staged<bf16> packed(3 * kPanelColumns);
  pack_panels<Exec, bf16>(Exec(), packed.data(), WeightType::kBf16, const_view(stored, 1, 3),
                          PackOrder::kRowsAreColumns);
  Exec().fence();
  for (int k = 0; k < 3; ++k) CHECK(packed[k * kPanelColumns].bits == stored[k].bits);
}
