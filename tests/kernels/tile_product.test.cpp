// SPDX-License-Identifier: Apache-2.0
//
// The products of tile units on a tile unit in software, so that all but the instructions
// themselves is tested on any processor; and what is found by the comparison that these and the
// units of dot products go through before they are used.
#include "kernels/detail/tile_product.inl.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>

#include "kernels/CheckOp.hpp"
#include "kernels/canonical/pair_chain.hpp"
#include "kernels/detail/BitCheck.hpp"
#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/SimdScalar.hpp"
#include "kernels/detail/dot_product.inl.hpp"
#include "kernels/detail/product_args.hpp"
#include "shard/ReductionTree.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// Eight tiles of 16 rows of 64 bytes, as AMX has them; sums are those of the chain.
template <class Chain>
struct SoftwareTiles {
  using Tile = std::array<std::array<std::byte, 64>, 16>;
  static inline std::array<Tile, 8> tiles;
  static inline bool is_configured = false;

  static void configure() { is_configured = true; }
  static void release() { is_configured = false; }
  template <int tile>
  static void zero() {
    REQUIRE(is_configured);
    tiles[tile] = {};
  }
  template <int tile>
  static void load(const void* data, int stride) {
    REQUIRE(is_configured);
    for (int r = 0; r < 16; ++r)
      std::memcpy(tiles[tile][r].data(), static_cast<const char*>(data) + r * stride, 64);
  }
  template <int tile>
  static void store(void* data, int stride) {
    for (int r = 0; r < 16; ++r)
      std::memcpy(static_cast<char*>(data) + r * stride, tiles[tile][r].data(), 64);
  }
  template <int sums, int a, int w>
  static void add_products() {
    for (int r = 0; r < 16; ++r)
      for (int c = 0; c < 16; ++c) {
        std::array<float, canonical::kPairBlock> row, column;
        for (int k = 0; k < canonical::kPairBlock; ++k) {
          row[k] = element(tiles[a], r, k);
          column[k] = element(tiles[w], k / 2, 2 * c + k % 2);
        }
        float sum;
        std::memcpy(&sum, &tiles[sums][r][4 * c], 4);
        sum = Chain()(sum, row.data(), 1, column.data(), 1, canonical::kPairBlock);
        std::memcpy(&tiles[sums][r][4 * c], &sum, 4);
      }
  }

 private:
  static float element(const Tile& tile, int row, int at) {
    bf16 value;
    std::memcpy(&value, &tile[row][2 * at], 2);
    return to_float(value);
  }
};

template <class Chain>
constexpr auto kTilesOf = detail::tile_product_task<detail::Scalar, SoftwareTiles<Chain>>;
constexpr auto kTiles = kTilesOf<canonical::PairChain>;

// Other ways to sum a block.
struct OneChain {
  float operator()(float start, const float* a, int, const float* b, int, int n) const {
    for (int k = 0; k < n; ++k) start = std::fma(a[k], b[k], start);
    return start;
  }
};
struct RoundedProducts {
  float operator()(float start, const float* a, int, const float* b, int, int n) const {
    float even = 0.0f, odd = 0.0f;
    for (int k = 0; k < n; k += 2) {
      even += a[k] * b[k];
      odd += a[k + 1] * b[k + 1];
    }
    return start + (even + odd);
  }
};
// Keeps products and sums that are denormal numbers.
struct WithDenormals {
  float operator()(float start, const float* a, int, const float* b, int, int n) const {
    double even = 0.0, odd = 0.0;
    for (int k = 0; k < n; k += 2) {
      even = nearest(std::fma(exact(a[k]), exact(b[k]), even));
      odd = nearest(std::fma(exact(a[k + 1]), exact(b[k + 1]), odd));
    }
    return static_cast<float>(start + (even + odd));
  }
  static double exact(float x) { return x; }
  // To 24 significant bits, however small.
  static double nearest(double x) {
    int exponent = 0;
    const double significand = std::frexp(x, &exponent);
    return std::ldexp(std::nearbyint(significand * 0x1p24), exponent - 24);
  }
};

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
  const detail::DotOps& ops = detail::kScalarOps.dot;
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
  multiply_by(detail::kScalarOps.pair_product, args);
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
  check("vectors, rounded before", detail::kScalarOps.pair_product);
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
  for (const int rows : {1, 40, 130}) {
    const int n = 37, m = 70;
    const Floats a = random_floats(rows * n, 6), b = random_floats(rows * m, 7);
    Floats gradient = random_floats(n * m, 8);
    compare(std::to_string(rows) + " rows",
            detail::accumulate_outer_args(GradientView(gradient.data(), GradientType::kF32, n, m),
                                          const_view(a, rows, n), const_view(b, rows, m)),
            gradient);
  }
}

namespace {

// Units of dot products that sum a pair, or round what enters, in another way.
struct EvenFirst : detail::Scalar {
  using detail::Scalar::fma;
  static V fma(const Pairs& a, const Pairs& b, V c) {
    return fma(a.second, b.second, fma(a.first, b.first, c));
  }
};
struct RoundedPairProducts : detail::Scalar {
  using detail::Scalar::fma;
  static V fma(const Pairs& a, const Pairs& b, V c) {
    return add(mul(a.first, b.first), add(mul(a.second, b.second), c));
  }
};
struct PairBeforeSum : detail::Scalar {
  using detail::Scalar::fma;
  static V fma(const Pairs& a, const Pairs& b, V c) {
    return add(c, fma(a.first, b.first, mul(a.second, b.second)));
  }
};
struct DenormalsRounded : detail::Scalar {
  using detail::Scalar::store_rounded;
  static void store_rounded(bf16* p, V lower, V upper) {
    for (int i = 0; i < 16; ++i) {
      p[i] = to_bf16(lower.lane[i]);
      p[16 + i] = to_bf16(upper.lane[i]);
    }
  }
};
struct SameSet : detail::Scalar {};

}  // namespace

TEST_CASE("dot products that sum or round otherwise are found", "[product]") {
  const auto is_accepted = []<class S>(S) {
    return detail::gives_equal_bits(detail::dot_product_task<S>, detail::kScalarOps.dot.product);
  };
  CHECK(is_accepted(SameSet()));
  CHECK_FALSE(is_accepted(EvenFirst()));
  CHECK_FALSE(is_accepted(RoundedPairProducts()));
  CHECK_FALSE(is_accepted(PairBeforeSum()));
  CHECK_FALSE(is_accepted(DenormalsRounded()));
}

TEST_CASE("units that round otherwise are found", "[product]") {
  const auto is_accepted = [](detail::ProductTask task) {
    return detail::gives_equal_bits(task, detail::kScalarOps.pair_product);
  };
  CHECK(is_accepted(detail::kScalarOps.pair_product));
  CHECK_FALSE(is_accepted(detail::kScalarOps.dot.product));
  CHECK(is_accepted(kTiles));
  CHECK_FALSE(is_accepted(kTilesOf<OneChain>));
  CHECK_FALSE(is_accepted(kTilesOf<RoundedProducts>));
  CHECK_FALSE(is_accepted(kTilesOf<WithDenormals>));
}
