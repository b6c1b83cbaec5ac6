// SPDX-License-Identifier: Apache-2.0
#include "planner/PromptLikeness.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <vector>

#include "base/Error.hpp"
#include "base/Random.hpp"

using namespace taper;

namespace {

constexpr int kPrompts = 32, kSamples = 8;

// Lengths of one generation in which a response has its prompt's length with a probability.
std::vector<int> lengths_of(double share, std::uint64_t generation) {
  RandomStream random(5, RandomPurpose::kTest, generation, 0);
  std::vector<int> lengths;
  for (int p = 0; p < kPrompts; ++p) {
    const int prompt = static_cast<int>(random.between(1, 1000));
    for (int i = 0; i < kSamples; ++i) {
      const int own = static_cast<int>(random.between(1, 1000));
      lengths.push_back(random.uniform() < share ? prompt : own);
    }
  }
  return lengths;
}

double learned(double share) {
  PromptLikeness likeness(3);
  for (std::uint64_t g = 0; g < 12; ++g) likeness.learn(lengths_of(share, g), kSamples);
  return likeness.share() / 65536.0;
}

}  // namespace

TEST_CASE("the share of responses that are as long as their prompt says is found") {
  CHECK(learned(0.0) < 0.2);
  CHECK(std::abs(learned(0.5) - 0.5) < 0.12);
  CHECK(std::abs(learned(0.8) - 0.8) < 0.12);
  CHECK(learned(1.0) > 0.9);
}

TEST_CASE("what says nothing changes nothing") {
  PromptLikeness likeness(3);
  CHECK(likeness.share() == 0);
  likeness.learn(std::vector<int>{1, 2, 3, 4}, 1);      // one response a prompt
  likeness.learn(std::vector<int>{1, 2, 3, 4}, 4);      // one prompt
  likeness.learn(std::vector<int>(64, 512), kSamples);  // one length
  CHECK(likeness.share() == 0);
}

TEST_CASE("likeness is forgotten") {
  PromptLikeness likeness(2);
  for (std::uint64_t g = 0; g < 6; ++g) likeness.learn(lengths_of(1.0, g), kSamples);
  const int before = likeness.share();
  for (std::uint64_t g = 0; g < 8; ++g) likeness.learn(lengths_of(0.0, g), kSamples);
  CHECK(likeness.share() < before / 2);
}

TEST_CASE("likeness is saved and loaded") {
  PromptLikeness likeness(3), other(3);
  likeness.learn(lengths_of(0.7, 0), kSamples);
  other.load(likeness.save());
  CHECK(other.share() == likeness.share());
  CHECK_THROWS_AS(other.load(std::string(8, 0)), Error);
}
