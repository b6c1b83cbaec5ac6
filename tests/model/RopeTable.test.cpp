// SPDX-License-Identifier: Apache-2.0
#include "model/RopeTable.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

using namespace taper;

namespace {

constexpr int kPositions = 40, kHalf = 8;

ModelConfig config(RopeScaling::Kind kind) {
  ModelConfig c;
  c.head_dim = 2 * kHalf;
  c.rope_scaling = {kind, 4.0, 1.0, 4.0, 64.0};
  return c;
}

// The angle that position 1 turns pair i by.
double frequency(const std::vector<float>& table, int i) {
  return std::atan2(table[2 * kHalf + kHalf + i], table[2 * kHalf + i]);
}

}  // namespace

TEST_CASE("rows are cosines and sines of position times frequency") {
  const auto table = make_rope_table(config(RopeScaling::Kind::kNone), kPositions);
  REQUIRE(table.size() == kPositions * 2 * kHalf);
  for (int p = 0; p < kPositions; ++p)
    for (int i = 0; i < kHalf; ++i) {
      const double angle = p * std::pow(10000.0, -2.0 * i / (2 * kHalf));
      CHECK(std::abs(table[p * 2 * kHalf + i] - std::cos(angle)) < 4e-6);  // angle rounded to f32
      CHECK(std::abs(table[p * 2 * kHalf + kHalf + i] - std::sin(angle)) < 4e-6);
    }
}

TEST_CASE("linear scaling stretches all waves, llama3 scaling the long ones") {
  const auto plain = make_rope_table(config(RopeScaling::Kind::kNone), 2),
             linear = make_rope_table(config(RopeScaling::Kind::kLinear), 2),
             llama3 = make_rope_table(config(RopeScaling::Kind::kLlama3), 2);
  int kept = 0, stretched = 0;
  for (int i = 0; i < kHalf; ++i) {
    const double f = frequency(plain, i), g = frequency(llama3, i);
    CHECK(std::abs(frequency(linear, i) - f / 4) < 1e-6 * f);
    const double wave = 2 * M_PI / f;
    if (wave < 64.0 / 4) {
      CHECK(g == f);
      ++kept;
    } else if (wave > 64.0) {
      CHECK(std::abs(g - f / 4) < 1e-6 * f);
      ++stretched;
    } else {
      CHECK(g < f);
      CHECK(g > f / 4);
    }
  }
  CHECK(kept > 0);
  CHECK(stretched > 0);
}
