// SPDX-License-Identifier: Apache-2.0
#include "kernels/canonical/tensor_core.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace taper;
using namespace taper::canonical;

namespace {

using Row = std::vector<bf16>;

Row row_of(std::initializer_list<float> values) {
  Row r;
  for (float v : values) r.push_back(to_bf16(v));
  return r;
}

float step(const Row& a, const Row& b, float c, int fraction_bits) {
  return tensor_step(a.data(), b.data(), static_cast<int>(a.size()), c, fraction_bits);
}
float chain(const Row& a, const Row& b, float c, const TensorCore& core) {
  return tensor_chain(a.data(), b.data(), static_cast<int>(a.size()), c, core);
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("products and sums that fit into the fraction are exact") {
  const Row a = row_of({1.5f, -2.0f, 0.25f, 3.0f}), b = row_of({2.0f, 4.0f, 8.0f, -1.0f});
  for (int architecture : {80, 90})
    CHECK(chain(a, b, 10.0f, tensor_core(architecture)) == 10.0f + 3.0f - 8.0f + 2.0f - 3.0f);
}

TEST_CASE("bits below the fraction of the largest term are cut, not rounded") {
  // 2^25 + 1 has 26 bits: with 24 fraction bits the 1 is lost before the sum, with 25 it is kept.
  const Row large = row_of({0x1p25f, 1.0f, -0x1p25f}), one = row_of({1.0f, 1.0f, 1.0f});
  CHECK(step(large, one, 0.0f, 25) == 1.0f);
  CHECK(step(large, one, 0.0f, 24) == 0.0f);
}

TEST_CASE("the sum is rounded toward zero") {
  const Row ones = row_of({1.0f, 1.0f});
  const Row parts = row_of({0x1p24f, 1.0f});
  CHECK(step(parts, ones, 0.0f, 25) == 0x1p24f);
  const Row negative = row_of({-0x1p24f, -1.0f});
  CHECK(step(negative, ones, 0.0f, 25) == -0x1p24f);
}

TEST_CASE("sm_80 rounds after eight products, sm_90 after sixteen") {
  Row a(16), b(16, to_bf16(1.0f));
  a[0] = to_bf16(0x1p24f);
  a[1] = a[8] = to_bf16(1.0f);  // together 2, which 2^24 can hold; one by one they are lost
  CHECK(chain(a, b, 0.0f, tensor_core(90)) == 0x1p24f + 2.0f);
  CHECK(chain(a, b, 0.0f, tensor_core(80)) == 0x1p24f);
}

TEST_CASE("values that are no numbers go the way of IEEE 754") {
  const Row one = row_of({1.0f, 1.0f});
  CHECK(step(row_of({kInfinity, 1.0f}), one, 0.0f, 25) == kInfinity);
  CHECK(step(row_of({1.0f, 1.0f}), one, -kInfinity, 25) == -kInfinity);
  CHECK(std::isnan(step(row_of({kInfinity, -kInfinity}), one, 0.0f, 25)));
  CHECK(std::isnan(step(row_of({kInfinity, 1.0f}), row_of({0.0f, 1.0f}), 0.0f, 25)));
}

TEST_CASE("a dot product is within the cut bits of the exact one") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    Row a(16), b(16);
    double exact = 0.0, largest = 0.0;
    for (int k = 0; k < 16; ++k) {
      const auto draw = [&] {
        return std::ldexp(static_cast<float>(random() % 511) - 255.0f,
                          static_cast<int>(random() % 21) - 10);
      };
      a[k] = to_bf16(draw());
      b[k] = to_bf16(draw());
      const double p = double{to_float(a[k])} * to_float(b[k]);
      exact += p;
      largest = std::max(largest, std::fabs(p));
    }
    const double error = std::fabs(step(a, b, 0.0f, 25) - exact);
    CHECK(error <= 17 * std::ldexp(largest, -24) + std::ldexp(std::fabs(exact), -23));
  }
}
