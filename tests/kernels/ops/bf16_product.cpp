// SPDX-License-Identifier: Apache-2.0
//
// Products of rounded operands: the bits of canonical/tile_chain.hpp and canonical/dot_chain.hpp on
// the host, of canonical/tensor_core.hpp on tensor cores, whatever the number of rows, with and
// without leaves, forward and backward.
#include <functional>

#include "kernels/canonical/dot_chain.hpp"
#include "kernels/canonical/product.hpp"
#include "kernels/canonical/tensor_core.hpp"
#include "kernels/canonical/tile_chain.hpp"
#include "kernels/ops/Data.hpp"
#include "kernels/ops/Op.hpp"
#include "kernels/ops/ProductTimes.hpp"
#include "kernels/product.hpp"
#include "kernels/reference/product.hpp"
#include "shard/ReductionTree.hpp"

namespace taper::test {
namespace {

// Of products of values below 1, relative to the largest sum; every step of 16 cuts at most 17
// terms and the sum.
constexpr double kError = 2e-5;

// What is computed in, and whether there is memory for rounded operands.
struct Setting {
  Arithmetic arithmetic;
  std::string name;
  bool keeps_rounded = false;
};

// canonical::multiply() wants one type for the chains of all arithmetics.
using Chain =
    std::function<float(float, const float*, std::int64_t, const float*, std::int64_t, int)>;

#if defined(TAPER_CUDA)
Exec exec_of(const Setting& set) {
  static Staged<float> memory(1 << 18);
  Exec exec;
  exec.arithmetic = set.arithmetic;
  exec.fence();  // the memory may still be read
  if (set.keeps_rounded) exec.rounding = {memory.data(), 4 * std::ssize(memory)};
  return exec;
}
Chain chain_of(const Setting& /*set*/) {
  return canonical::TensorChain{canonical::tensor_core(Exec().architecture())};
}
#else
Exec exec_of(const Setting& set) {
  static Floats memory(1 << 20);
  Exec exec;
  exec.arithmetic = set.arithmetic;
  return set.keeps_rounded ? with_rounding(exec, memory.data(), std::ssize(memory)) : exec;
}
Chain chain_of(const Setting& set) {
  if (set.arithmetic == Arithmetic::kBf16Dot) return canonical::DotChain();
  return canonical::TileChain();
}
#endif

PackedWeights pack_bf16(const Setting& set, const Floats& stored, int columns, int k) {
  return pack(stored, columns, k, WeightType::kBf16, PackOrder::kRowsAreColumns, exec_of(set));
}

void compare_multiply(Report& report, const Setting& set, int rows, int columns, int k) {
  const Floats x = random_floats(std::int64_t{rows} * k, 1);
  const Floats stored = random_floats(std::int64_t{columns} * k, 2);
  const PackedWeights w = pack_bf16(set, stored, columns, k);
  const int padded = w.matrix.columns;
  Floats seen = rounded(stored, WeightType::kBf16);
  seen.resize(static_cast<std::size_t>(padded) * k);
  const Floats bias = random_floats(padded, 3);
  Floats y(std::size_t(rows) * padded);
  const std::string what = set.name + " product " + std::to_string(rows) + " x " +
                           std::to_string(columns) + " x " + std::to_string(k);
  const auto expected =
      canonical::multiply(x.data(), seen.data(), bias.data(), rows, padded, k, chain_of(set));
  multiply(exec_of(set), view(y, rows, padded), const_view(x, rows, k), w.matrix, const_view(bias));
  report.expect_equal(what, y, expected);
  report.expect_close(what, y,
                      reference::multiply(to_matrix(rounded(x, WeightType::kBf16), rows, k),
                                          to_matrix(seen, padded, k), to_doubles(bias))
                          .data,
                      kError);
}

// `cut`: inputs that x and the weights lack at the end of the last leaf.
void compare_leaves(Report& report, const Setting& set, int rows, int units, int stride, int size,
                    int last, int columns = 128, int cut = 0) {
  const ReductionTree tree(units, 1);
  const int k = units * stride - cut;
  const Floats x = random_floats(std::int64_t{rows} * k, 5);
  const Floats stored = random_floats(std::int64_t{columns} * k, 6);
  const PackedWeights w = pack_bf16(set, stored, columns, k);
  const Floats seen = rounded(stored, WeightType::kBf16);
  for (const Range range : {Range{0, units}, Range{1, units}}) {
    if (range.empty()) continue;
    const std::vector<int> program = tree.local_program(range);
    const int partials = tree.partials(range), inputs = range.size() * stride - cut;
    const Staged<int> on_device = staged(program);
    const LeafOrder order{range.size(), stride, size, last, on_device.data(), partials};
    Floats part_x, part_w;
    for (int r = 0; r < rows; ++r)
      part_x.insert(part_x.end(), &x[r * k] + range.begin * stride, &x[r * k] + k);
    for (int c = 0; c < columns; ++c)
      part_w.insert(part_w.end(), &seen[c * k] + range.begin * stride, &seen[c * k] + k);
    Floats y(static_cast<std::size_t>(partials) * rows * columns, NAN);
    multiply_leaves(exec_of(set), view(y, partials * rows, columns),
                    const_view(part_x, rows, inputs), w.matrix.k_slice(range.begin * stride, k),
                    order);
    report.expect_equal(set.name + " leaf product, rows " + std::to_string(rows) + ", leaves " +
                            std::to_string(range.size()) + " of " + std::to_string(size),
                        y,
                        canonical::multiply_leaves(part_x.data(), part_w.data(),
                                                   {stride, size, last, program, inputs}, rows,
                                                   columns, chain_of(set)));
  }
}

void compare_outer(Report& report, const Setting& set, int rows, int n, int m) {
  const Floats a = random_floats(std::int64_t{rows} * n, 7),
               b = random_floats(std::int64_t{rows} * m, 8);
  Floats gradient = random_floats(std::int64_t{n} * m, 9), expected = gradient;
  accumulate_outer(exec_of(set), view(gradient, n, m), const_view(a, rows, n),
                   const_view(b, rows, m));
  canonical::accumulate_outer(expected.data(), a.data(), b.data(), rows, n, m, chain_of(set));
  const std::string what = set.name + " accumulate_outer " + std::to_string(rows) + " x " +
                           std::to_string(n) + " x " + std::to_string(m);
  report.expect_equal(what, gradient, expected);

  // To fixed-point sums: the chain from zero, rounded once.
  Staged<Fixed> sums(gradient.size());
  Floats terms(gradient.size());
  accumulate_outer(exec_of(set), GradientView(sums.data(), GradientType::kFixed, n, m),
                   const_view(a, rows, n), const_view(b, rows, m));
  canonical::accumulate_outer(terms.data(), a.data(), b.data(), rows, n, m, chain_of(set));
  Exec().fence();
  std::vector<std::int64_t> got, wanted;
  for (const Fixed& sum : sums) got.push_back(sum.units);
  for (const float term : terms) wanted.push_back(to_fixed(term).units);
  report.expect_equal(what + ", fixed", got, wanted);
}

void compare(Report& report, Setting set) {
  for (const int rows : {1, 7, 8, 9, 17, 33, 65, 130})
    for (const int k : {1, 16, 37, 64, 65, 200})
      compare_multiply(report, set, rows, rows % 2 == 0 ? 64 : 100, k);
  compare_multiply(report, set, 5, 64, 2100);
  compare_multiply(report, set, 40, 384 * 64, 16);  // in wide blocks
  for (const int rows : {1, 12, 20, 70}) {
    compare_leaves(report, set, rows, 5, 64, 64, 64);
    compare_leaves(report, set, rows, 9, 24, 20, 7);
    compare_leaves(report, set, rows, 1, 80, 80, 80);
    compare_leaves(report, set, rows, 16, 16, 16, 16);  // in eight segments, or two
    compare_leaves(report, set, rows, 28, 16, 16, 9);
    compare_leaves(report, set, rows, 3, 256, 256, 64, 128, 192);  // four blocks, and one
    compare_leaves(report, set, rows, 2, 256, 256, 40, 128, 192);
  }
  for (const bool rounds : {false, true}) {
    set.keeps_rounded = rounds;
    compare_multiply(report, set, 200, 300, 96);
    compare_multiply(report, set, 130, 64, 200);
    compare_leaves(report, set, 150, 12, 64, 56, 40);
    compare_leaves(report, set, 192, 40, 16, 16, 16, 64);   // more waiting sums than registers
    compare_leaves(report, set, 1024, 3, 16, 16, 16, 512);  // in blocks of 64 rows
    compare_leaves(report, set, 150, 3, 256, 256, 72, 128, 128);
    compare_outer(report, set, 75, 136, 264);
    // So many rows and panels that the host rounds before, with whole pairs and without, and more
    // inputs than a task takes at a time.
    compare_multiply(report, set, 350, 192, 600);
    compare_outer(report, set, 600, 350, 192);
    compare_multiply(report, set, 350, 192, 34);
    compare_multiply(report, set, 350, 192, 33);
    compare_leaves(report, set, 350, 5, 24, 20, 6, 192);
    compare_leaves(report, set, 350, 5, 24, 20, 7, 192);
    compare_outer(report, set, 34, 350, 192);
    compare_outer(report, set, 35, 350, 190);
    for (const int rows : {1, 17, 64, 150})
      for (const int n : {5, 64, 70})
        for (const int m : {15, 64, 130}) compare_outer(report, set, rows, n, m);
  }
  compare_leaves(report, set, 128, 300, 8, 8, 8,
                 64);  // more waiting sums than these and shared memory hold
  set.keeps_rounded = false;
  for (const int k : {1, 2, 31, 33, 63, 127, 129, 511, 513, 577})
    compare_multiply(report, set, 3, 130, k);
}

void time(const Stopwatch& watch, Setting set) {
  set.keeps_rounded = kOnHost;
  time_multiply(watch, "multiply in " + set.name, exec_of(set),
                vocabulary_weights(WeightType::kBf16, exec_of(set)));
  time_outer(watch, "accumulate_outer in " + set.name, exec_of(set));
}

Op op_in(const Setting& set) {
  return {set.name + " product",
          [set](Report& report) { compare(report, set); },
          {},
          [set](const Stopwatch& watch) { time(watch, set); }};
}

}  // namespace

Op bf16_product_op() {
  return op_in({Arithmetic::kBf16, "bf16"});
}

Op bf16_dot_product_op() {
  return op_in({Arithmetic::kBf16Dot, "bf16-dot"});
}

}  // namespace taper::test
