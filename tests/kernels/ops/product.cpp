// SPDX-License-Identifier: Apache-2.0
#include "kernels/product.hpp"

#include "kernels/activation.hpp"
#include "kernels/canonical/product.hpp"
#include "kernels/ops/Data.hpp"
#include "kernels/ops/Op.hpp"
#include "kernels/ops/ProductTimes.hpp"
#include "kernels/reference/product.hpp"

namespace taper::test {
namespace {

// Of a float chain of at most 2100 terms, relative to the largest element.
constexpr double kChainError = 4e-6;

struct Case {
  int rows, columns, k;  // columns: valid ones
  WeightType type;
  bool with_bias;
};

std::string label(const Case& c) {
  return std::to_string(c.rows) + " x " + std::to_string(c.columns) + " x " + std::to_string(c.k) +
         (c.type == WeightType::kBf16 ? " bf16" : " f32") + (c.with_bias ? " bias" : "");
}

void compare_multiply(Report& report, const Case& c) {
  const Floats x = random_floats(std::int64_t{c.rows} * c.k, 1);
  const Floats stored = random_floats(std::int64_t{c.columns} * c.k, 2);
  const PackedWeights w = pack(stored, c.columns, c.k, c.type, PackOrder::kRowsAreColumns);
  Floats seen = rounded(stored, c.type);
  const int padded = w.matrix.columns;
  const Floats bias = c.with_bias ? random_floats(padded, 3) : Floats{};
  Floats y(static_cast<std::size_t>(c.rows) * padded, NAN);
  multiply(Exec(), view(y, c.rows, padded), const_view(x, c.rows, c.k), w.matrix, const_view(bias));

  seen.resize(static_cast<std::size_t>(padded) * c.k);  // padding columns have zero weights
  const float* b = c.with_bias ? bias.data() : nullptr;
  report.expect_equal("multiply " + label(c), y,
                      canonical::multiply(x.data(), seen.data(), b, c.rows, padded, c.k));
  const reference::Matrix right = reference::multiply(
      to_matrix(x, c.rows, c.k), to_matrix(seen, padded, c.k), to_doubles(bias));
  report.expect_close("multiply " + label(c), y, right.data, kChainError);
}

// Views of columns and of inputs give what a packing of the part gives.
void compare_slices(Report& report) {
  const int rows = 7, columns = 256, k = 50;
  const Floats x = random_floats(rows * k, 4), stored = random_floats(columns * k, 5);
  const PackedWeights w = pack(stored, columns, k, WeightType::kBf16, PackOrder::kRowsAreColumns);
  const Floats seen = rounded(stored, WeightType::kBf16);
  Floats y(rows * 128);
  multiply(Exec(), view(y, rows, 128), const_view(x, rows, k), w.matrix.column_slice(64, 192));
  report.expect_equal("column slice", y,
                      canonical::multiply(x.data(), seen.data() + 64 * k, nullptr, rows, 128, k));
  Floats part_x, part_w;
  for (int r = 0; r < rows; ++r) part_x.insert(part_x.end(), &x[r * k] + 11, &x[r * k] + 40);
  for (int c = 0; c < columns; ++c)
    part_w.insert(part_w.end(), &seen[c * k] + 11, &seen[c * k] + 40);
  y.assign(rows * columns, NAN);
  multiply(Exec(), view(y, rows, columns), const_view(part_x, rows, 29), w.matrix.k_slice(11, 40));
  report.expect_equal(
      "input slice", y,
      canonical::multiply(part_x.data(), part_w.data(), nullptr, rows, columns, 29));
}

void compare_outer(Report& report, int rows, int n, int m) {
  const Floats a = random_floats(std::int64_t{rows} * n, 6),
               b = random_floats(std::int64_t{rows} * m, 7);
  const Floats start = random_floats(std::int64_t{n} * m, 8);
  Floats gradient = start, expected = start;
  accumulate_outer(Exec(), view(gradient, n, m), const_view(a, rows, n), const_view(b, rows, m));
  canonical::accumulate_outer(expected.data(), a.data(), b.data(), rows, n, m);
  const std::string what = "accumulate_outer " + std::to_string(rows) + " x " + std::to_string(n) +
                           " x " + std::to_string(m);
  report.expect_equal(what, gradient, expected);
  reference::Matrix right = reference::outer_product(to_matrix(a, rows, n), to_matrix(b, rows, m));
  for (std::size_t i = 0; i < right.data.size(); ++i) right.data[i] += start[i];
  report.expect_close(what, gradient, right.data, kChainError);
}

void compare(Report& report) {
  for (int rows = 1; rows <= 70; ++rows)
    for (const WeightType type : {WeightType::kF32, WeightType::kBf16})
      compare_multiply(report, {rows, 100, 37, type, rows % 2 == 0});
  for (const int rows : {1, 5, 11, 12, 13, 49, 97, 200})
    for (const int k : {1, 2, 63, 127, 128, 129, 257})
      for (const int columns : {1, 64, 65, 192})
        compare_multiply(
            report, {rows, columns, k, k % 2 == 0 ? WeightType::kF32 : WeightType::kBf16, k > 100});
  for (const int k : {1023, 1024, 1025, 2100})  // inputs are taken 1024 at a time
    for (const int rows : {1, 7, 20})
      compare_multiply(report, {rows, 64, k, WeightType::kBf16, true});
  compare_slices(report);
  for (const int rows : {1, 2, 17, 128, 129, 300})
    for (const int n : {1, 5, 12, 64, 70})
      for (const int m : {1, 15, 16, 17, 63, 64, 65, 130}) compare_outer(report, rows, n, m);
  compare_outer(report, 1100, 100, 64);
}

void gradient(Report& report) {
  const int rows = 5, columns = 7, k = 6;
  const reference::Matrix x = to_matrix(random_floats(rows * k, 1), rows, k);
  const reference::Matrix w = to_matrix(random_floats(columns * k, 2), columns, k);
  const reference::Matrix dy = to_matrix(random_floats(rows * columns, 3), rows, columns);
  const reference::Vector bias = to_doubles(random_floats(columns, 4));
  const auto loss = [&](const reference::Vector& at_x, const reference::Vector& at_w,
                        const reference::Vector& at_b) {
    return dot(dy.data, reference::multiply({rows, k, at_x}, {columns, k, at_w}, at_b).data);
  };
  const auto by_x =
      finite_differences(x.data, [&](const auto& v) { return loss(v, w.data, bias); });
  const auto by_w =
      finite_differences(w.data, [&](const auto& v) { return loss(x.data, v, bias); });
  const auto by_bias =
      finite_differences(bias, [&](const auto& v) { return loss(x.data, w.data, v); });
  report.expect_close("reference dx", reference::multiply(dy, reference::transpose(w)).data, by_x,
                      1e-8);
  report.expect_close("reference dw", reference::outer_product(dy, x).data, by_w, 1e-8);
  report.expect_close("reference dbias", reference::column_sums(dy), by_bias, 1e-8);

  // The kernel's dx is a product with the weights packed the other way round.
  const int n = 70, m = 130, count = 33;
  const Floats fdy = random_floats(count * m, 5), fw = random_floats(m * n, 6);
  const PackedWeights packed = pack(fw, m, n, WeightType::kF32, PackOrder::kRowsAreInputs);
  Floats dx(static_cast<std::size_t>(count) * packed.matrix.columns);
  multiply(Exec(), view(dx, count, packed.matrix.columns), const_view(fdy, count, m),
           packed.matrix);
  Exec().fence();
  Floats valid;
  for (int r = 0; r < count; ++r)
    valid.insert(valid.end(), &dx[r * packed.matrix.columns], &dx[r * packed.matrix.columns] + n);
  report.expect_close(
      "dx", valid,
      reference::multiply(to_matrix(fdy, count, m), reference::transpose(to_matrix(fw, m, n))).data,
      kChainError);
  Floats dbias(m);
  accumulate_bias(Exec(), view(dbias), const_view(fdy, count, m));
  report.expect_close("dbias", dbias, reference::column_sums(to_matrix(fdy, count, m)),
                      kChainError);
}

void time(const Stopwatch& watch) {
  for (const WeightType type : {WeightType::kBf16, WeightType::kF32})
    time_multiply(watch, type == WeightType::kBf16 ? "multiply bf16" : "multiply f32", Exec(),
                  vocabulary_weights(type, Exec()));
  time_outer(watch, "accumulate_outer", Exec());
}

}  // namespace

Op product_op() {
  return {"product", compare, gradient, time};
}

}  // namespace taper::test
