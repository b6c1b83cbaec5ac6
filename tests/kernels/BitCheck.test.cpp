// SPDX-License-Identifier: Apache-2.0
#include "kernels/detail/BitCheck.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "kernels/SoftwareTiles.hpp"
#include "kernels/detail/dot_product.inl.hpp"

using namespace taper;
using namespace taper::test;

namespace {

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
    return detail::gives_equal_bits(detail::dot_product_task<S>,
                                    detail::kScalarOps.pairs.dot_product);
  };
  CHECK(is_accepted(SameSet()));
  CHECK_FALSE(is_accepted(EvenFirst()));
  CHECK_FALSE(is_accepted(RoundedPairProducts()));
  CHECK_FALSE(is_accepted(PairBeforeSum()));
  CHECK_FALSE(is_accepted(DenormalsRounded()));
}

TEST_CASE("units that round otherwise are found", "[product]") {
  const auto is_accepted = [](detail::ProductTask task) {
    return detail::gives_equal_bits(task, detail::kScalarOps.tile_product);
  };
  CHECK(is_accepted(detail::kScalarOps.tile_product));
  CHECK_FALSE(is_accepted(detail::kScalarOps.pairs.dot_product));
  CHECK(is_accepted(kTiles));
  CHECK_FALSE(is_accepted(kTilesOf<OneChain>));
  CHECK_FALSE(is_accepted(kTilesOf<RoundedProducts>));
  CHECK_FALSE(is_accepted(kTilesOf<WithDenormals>));
}
