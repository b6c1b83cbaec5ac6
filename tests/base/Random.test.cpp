// SPDX-License-Identifier: Apache-2.0
#include "base/Random.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <set>

#include "base/Error.hpp"

using namespace taper;

TEST_CASE("philox4x32-10 gives the published vectors") {
  // Known-answer vectors of the Random123 distribution.
  REQUIRE(philox4x32({0, 0, 0, 0}, {0, 0}) ==
          std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  REQUIRE(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
          std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
}

TEST_CASE("every field of the key changes the number") {
  const CounterRandom random(7);
  const RandomKey base{RandomPurpose::kSampling, 3, 5, 2, 11, 1};
  std::set<std::uint64_t> seen{random.bits(base), CounterRandom(8).bits(base)};
  auto vary = [&](auto change) {
    RandomKey key = base;
    change(key);
    seen.insert(random.bits(key));
  };
  vary([](RandomKey& k) { k.purpose = RandomPurpose::kEvaluation; });
  vary([](RandomKey& k) { ++k.iteration; });
  vary([](RandomKey& k) { ++k.ordinal; });
  vary([](RandomKey& k) { ++k.sample; });
  vary([](RandomKey& k) { ++k.position; });
  vary([](RandomKey& k) { ++k.item; });
  REQUIRE(seen.size() == 8);
}

TEST_CASE("a field that does not fit its width is an error") {
  const CounterRandom random(1);
  REQUIRE_THROWS_AS(random.bits({RandomPurpose::kTest, 1u << 24, 0, 0, 0, 0}), Error);
  REQUIRE_THROWS_AS(random.bits({RandomPurpose::kTest, 0, 0, 1u << 16, 0, 0}), Error);
  REQUIRE_THROWS_AS(random.bits({RandomPurpose::kTest, 0, 0, 0, 1u << 24, 0}), Error);
}

TEST_CASE("uniform numbers are open and have the right moments") {
  const CounterRandom random(42);
  double sum = 0, squares = 0, normal_sum = 0, normal_squares = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const double u =
        random.uniform({RandomPurpose::kTest, 0, 0, 0, static_cast<std::uint64_t>(i), 0});
    REQUIRE(u > 0.0);
    REQUIRE(u < 1.0);
    sum += u;
    squares += u * u;
    const double n =
        random.normal({RandomPurpose::kTest, 1, 0, 0, static_cast<std::uint64_t>(i), 0});
    normal_sum += n;
    normal_squares += n * n;
  }
  CHECK(std::abs(sum / kCount - 0.5) < 0.005);
  CHECK(std::abs(squares / kCount - 1.0 / 3.0) < 0.005);
  CHECK(std::abs(normal_sum / kCount) < 0.015);
  CHECK(std::abs(normal_squares / kCount - 1.0) < 0.02);
}
