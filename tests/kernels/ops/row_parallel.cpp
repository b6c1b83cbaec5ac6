// SPDX-License-Identifier: Apache-2.0
//
// Row-parallel products: leaves, their tree, and the same bits for any number of shards.
#include "kernels/canonical/product.hpp"
#include "kernels/ops/Data.hpp"
#include "kernels/ops/Op.hpp"
#include "kernels/product.hpp"
#include "kernels/reference/product.hpp"
#include "shard/ReductionTree.hpp"
#include "shard/Shard.hpp"

namespace taper::test {
namespace {

constexpr double kChainError = 2e-6;

struct Problem {
  int rows, columns, stride, size, last_size;  // of leaves
  WeightType type;
};

// x (rows, leaves * stride) and weights (columns, leaves * stride); nothing but zeros and, in x,
// garbage lies between a leaf's size and its stride.
struct Inputs {
  Floats x, w;
};

Inputs make_inputs(const Problem& p, int leaves) {
  const int k = leaves * p.stride;
  Inputs in{random_floats(std::int64_t{p.rows} * k, 1),
            rounded(random_floats(std::int64_t{p.columns} * k, 2), p.type)};
  for (int r = 0; r < p.rows; ++r)
    for (int i = 0; i < k; ++i)
      if (i % p.stride >= (i / p.stride + 1 == leaves ? p.last_size : p.size))
        in.x[r * k + i] = NAN;
  return in;
}

Floats input_columns(const Floats& values, int rows, int columns, int begin, int end) {
  Floats part;
  for (int r = 0; r < rows; ++r)
    part.insert(part.end(), values.begin() + r * columns + begin,
                values.begin() + r * columns + end);
  return part;
}

// Partial sums (partials, rows, columns) of leaves [range) by the kernel; the last leaf of all may
// be shorter.
Floats partial_sums(const Problem& p, const Inputs& in, const PackedWeights& w, int leaves,
                    Range range, const Staged<int>& program, int partials) {
  const Floats x =
      input_columns(in.x, p.rows, leaves * p.stride, range.begin * p.stride, range.end * p.stride);
  const int last = range.end == leaves ? p.last_size : p.size;
  const LeafOrder order{range.size(), p.stride, p.size, last, program.data(), partials};
  Floats y(static_cast<std::size_t>(partials) * p.rows * w.matrix.columns, NAN);
  multiply_leaves(Exec(), view(y, partials * p.rows, w.matrix.columns),
                  const_view(x, p.rows, range.size() * p.stride),
                  w.matrix.k_slice(range.begin * p.stride, range.end * p.stride), order);
  Exec().fence();
  return y;
}

// All shards of a degree, their partial sums combined by the finish program.
Floats sharded_product(const Problem& p, const Inputs& in, const PackedWeights& w,
                       const ReductionTree& tree, int units, int degree) {
  const int leaves_per_unit = tree.leaves() / units;
  std::vector<Floats> pushed;
  std::vector<Range> shards;
  const std::size_t size = static_cast<std::size_t>(p.rows) * w.matrix.columns;
  for (int i = 0; i < degree; ++i) {
    const Range own = shard_range(units, degree, i);
    const Range range{own.begin * leaves_per_unit, own.end * leaves_per_unit};
    shards.push_back(range);
    if (range.empty()) continue;
    const int partials = tree.partials(range);
    const Floats y =
        partial_sums(p, in, w, tree.leaves(), range, staged(tree.local_program(range)), partials);
    for (int n = 0; n < partials; ++n)
      pushed.emplace_back(y.begin() + n * size, y.begin() + (n + 1) * size);
  }
  const std::vector<int> program = tree.finish_program(shards);
  Floats total;
  for (std::size_t e = 0; e < size; ++e) {
    std::vector<float> values;
    for (const Floats& partial : pushed) values.push_back(partial[e]);
    total.push_back(canonical::run_tree(program, values).front());
  }
  return total;
}

void compare_tree(Report& report, const Problem& p, int units, int leaves_per_unit) {
  const ReductionTree tree(units, leaves_per_unit);
  const int leaves = tree.leaves(), k = leaves * p.stride;
  const Range all{0, leaves};
  const Inputs in = make_inputs(p, leaves);
  const PackedWeights w = pack(in.w, p.columns, k, p.type, PackOrder::kRowsAreColumns);
  const std::vector<int> program = tree.local_program(all);
  const Floats whole = partial_sums(p, in, w, leaves, all, staged(program), 1);

  const std::string what = "leaf product, rows " + std::to_string(p.rows) + ", units " +
                           std::to_string(units) + " x " + std::to_string(leaves_per_unit) +
                           ", leaf " + std::to_string(p.size);
  Floats padded = in.w;
  padded.resize(static_cast<std::size_t>(w.matrix.columns) * k);
  const canonical::Leaves order{p.stride, p.size, p.last_size, program};
  report.expect_equal(
      what, whole,
      canonical::multiply_leaves(in.x.data(), padded.data(), order, p.rows, w.matrix.columns));
  Floats clean = in.x;
  for (float& value : clean)
    if (value != value) value = 0.0f;
  report.expect_close(
      what, whole,
      reference::multiply(to_matrix(clean, p.rows, k), to_matrix(padded, w.matrix.columns, k)).data,
      kChainError);
  for (const int degree : {2, 3, 4, 6})
    if (degree <= units)
      report.expect_equal(what + ", TP " + std::to_string(degree),
                          sharded_product(p, in, w, tree, units, degree), whole);
}

void compare(Report& report) {
  for (int units = 1; units <= 24; ++units) {
    const WeightType type = units % 2 == 0 ? WeightType::kBf16 : WeightType::kF32;
    compare_tree(report, {units % 7 + 1, 64, 8, 8, units % 3 == 0 ? 5 : 8, type}, units, 1);
    compare_tree(report, {13, 40, 8, 6, 6, type}, units, units % 3 + 2);
  }
  // Shapes of real layers: heads of 64 and 80 at a stride of 64 and 128, and all numbers of rows.
  for (const int rows : {1, 2, 3, 6, 7, 12, 47, 48, 49, 100})
    compare_tree(report, {rows, 128, 64, 64, 64, WeightType::kBf16}, 3, 3);
  compare_tree(report, {30, 64, 128, 80, 80, WeightType::kF32}, 5, 1);
  compare_tree(report, {5, 64, 1100, 1100, 1030, WeightType::kBf16}, 3, 1);
  for (int rows = 1; rows <= 70; ++rows)
    compare_tree(report, {rows, 64, 16, 16, 16, WeightType::kBf16}, 6, 1);
}

void time(const Stopwatch& watch) {
  const Problem shape{256, 576, 64, 64, 64, WeightType::kBf16};
  for (const int units : {9, 24})
    for (const int rows : {1, 8, 64, 256}) {
      Problem p = shape;
      p.rows = rows;
      const ReductionTree tree(units, 1);
      const Inputs in = make_inputs(p, units);
      const PackedWeights w =
          pack(in.w, p.columns, units * p.stride, p.type, PackOrder::kRowsAreColumns);
      const Staged<int> program = staged(tree.local_program({0, units}));
      const LeafOrder order{units, p.stride, p.size, p.last_size, program.data(), 1};
      Floats y(static_cast<std::size_t>(rows) * w.matrix.columns);
      watch.measure(
          "multiply_leaves bf16 " + std::to_string(units * 64) + " x 576, rows " +
              std::to_string(rows),
          [&] {
            multiply_leaves(Exec(), view(y, rows, w.matrix.columns),
                            const_view(in.x, rows, units * p.stride), w.matrix, order);
          },
          static_cast<double>(w.bytes.size()), 2.0 * rows * units * p.stride * w.matrix.columns);
    }
}

}  // namespace

Op row_parallel_op() {
  return {"row_parallel", compare, nullptr, time};
}

}  // namespace taper::test
