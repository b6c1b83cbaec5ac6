// SPDX-License-Identifier: Apache-2.0
//
// The products of tile units, on a tile unit in software.
#include "kernels/detail/amx_product.inl.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "kernels/CheckOp.hpp"
#include "kernels/SoftwareTiles.hpp"
#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/product_args.hpp"
#include "shard/ReductionTree.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// All tasks of a product by `task`.
void multiply_by(void (*task)(const detail::ProductArgs&, int, int, int),
                 const detail::ProductArgs& args) {
  const int most = args.program == nullptr ? detail::kTaskRows : detail::kLeafRows;
  for (int row = 0; row < args.rows; row += most)
    for (int panel = 0; panel * kPanelColumns < args.columns; ++panel)
      task(args, row, std::min(args.rows, row + most), panel);
}

Exec bf16_exec() {
  Exec exec;
  exec.arithmetic = Arithmetic::kBf16;
  return exec;
}

// A, rounded for all tasks before (ProductArgs::rounded), which takes an even number of inputs if
// it stands by rows.
std::vector<bf16> round_before(detail::ProductArgs& args) {
  const detail::PairOps& ops = detail::kScalarOps.pairs;
  if (args.a_k == 1) {
    std::vector<bf16> rounded(args.rows * args.a_row);
    ops.round(rounded.data(), args.a, std::ssize(rounded));
    args.rounded = rounded.data();
    return rounded;
  }
  args.pair_stride = round_up(args.rows, 16) + 16;
  std::vector<bf16> rounded((args.leaf_k + 1) / 2 * args.pair_stride * 2);
  ops.round_pairs(reinterpret_cast<Bf16Pair*>(rounded.data()), args.pair_stride, args.a, args.a_k,
                  args.leaf_k, args.rows);
  args.rounded = rounded.data();
  return rounded;
}

void compare(const std::string& what, detail::ProductArgs args, Floats& y) {
  const Floats start = y;
  multiply_by(detail::kScalarOps.tile_product, args);
  const Floats expected = y;
  const auto check = [&](const std::string& by, detail::ProductTask task) {
    INFO(what << ", " << by);
    y = start;
    multiply_by(task, args);
    CHECK(std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)) == 0);
  };
  check("tiles", kTiles);
  if (args.a_k == 1 && args.a_row % 2 != 0) return;
  const std::vector<bf16> rounded = round_before(args);
  check("tiles, rounded before", kTiles);
  check("vectors, rounded before", detail::kScalarOps.tile_product);
}

}  // namespace

TEST_CASE("tiles give the bits of vector units, whatever the shape", "[product]") {
  flush_denormals();
  for (const int rows : {1, 15, 16, 17, 33, 96, 97})
    for (const int k : {1, 31, 32, 64, 95, 511, 513, 1100}) {
      if (rows > 33 && k > 100) continue;
      const int columns = rows % 2 == 0 ? 64 : 130;
      const Floats x = random_floats(std::int64_t{rows} * k, 1), bias = random_floats(192, 2);
      const PackedWeights w = pack(random_floats(std::int64_t{columns} * k, 3), columns, k,
                                   WeightType::kBf16, PackOrder::kRowsAreColumns, bf16_exec());
      Floats y(static_cast<std::size_t>(rows) * w.matrix.columns);
      compare(std::to_string(rows) + " rows, " + std::to_string(k) + " inputs",
              detail::multiply_args(view(y, rows, w.matrix.columns), const_view(x, rows, k),
                                    w.matrix, bias.data()),
              y);
    }
}

TEST_CASE("tiles add leaves as vector units do", "[product]") {
  flush_denormals();
  for (const int rows : {3, 20, 50}) {
    const int units = 9, stride = 48, columns = 128, k = units * stride;
    const ReductionTree tree(units, 1);
    const Range range{2, units};
    const std::vector<int> program = tree.local_program(range);
    const int partials = tree.partials(range), inputs = range.size() * stride;
    const LeafOrder order{range.size(), stride, 40, 7, program.data(), partials};
    const Floats x = random_floats(std::int64_t{rows} * inputs, 4);
    const PackedWeights w = pack(random_floats(std::int64_t{columns} * k, 5), columns, k,
                                 WeightType::kBf16, PackOrder::kRowsAreColumns, bf16_exec());
    Floats y(static_cast<std::size_t>(partials) * rows * columns);
    compare(
        std::to_string(rows) + " rows",
        detail::multiply_leaves_args(view(y, partials * rows, columns), const_view(x, rows, inputs),
                                     w.matrix.k_slice(range.begin * stride, k), order),
        y);
  }
}

TEST_CASE("tiles add outer products to gradients as vector units do", "[product]") {
  flush_denormals();
  for (const int rows : {1, 40, 130, 600}) {
    const int n = 37, m = 70;
    const Floats a = random_floats(rows * n, 6), b = random_floats(rows * m, 7);
    Floats gradient = random_floats(n * m, 8);
    compare(std::to_string(rows) + " rows",
            detail::accumulate_outer_args(GradientView(gradient.data(), GradientType::kF32, n, m),
                                          const_view(a, rows, n), const_view(b, rows, m)),
            gradient);
  }
}
