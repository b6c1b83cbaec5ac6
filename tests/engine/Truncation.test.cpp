// SPDX-License-Identifier: Apache-2.0
#include "engine/Truncation.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <vector>

#include "base/Random.hpp"

using namespace taper;

namespace {

using Masses = std::vector<std::int64_t>;

SamplingOptions options(int top_k, float top_p, float min_p) {
  SamplingOptions o;
  o.top_k = top_k;
  o.top_p = top_p;
  o.min_p = min_p;
  return o;
}

std::int64_t sum(const Masses& m) {
  return std::accumulate(m.begin(), m.end(), std::int64_t{0});
}

// The definition in plain words: rank all ids; cut to k; keep until the share p of what is left is
// reached; drop what is below the share of the largest, and what has no mass. The first always
// stays.
std::vector<char> kept_by_definition(const Masses& masses, const SamplingOptions& o) {
  std::vector<int> ids(masses.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int a, int b) { return masses[a] > masses[b]; });
  if (o.top_k > 0 && o.top_k < static_cast<int>(ids.size())) ids.resize(o.top_k);
  std::int64_t left = 0;
  for (const int id : ids) left += masses[id];
  std::vector<char> kept(masses.size(), 0);
  std::int64_t before = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::int64_t m = masses[ids[i]];
    const bool in_nucleus =
        o.top_p >= 1.0f ||
        static_cast<double>(before) < static_cast<double>(o.top_p) * static_cast<double>(left);
    const bool likely = static_cast<double>(m) >=
                        static_cast<double>(o.min_p) * static_cast<double>(masses[ids[0]]);
    kept[ids[i]] = i == 0 || (in_nucleus && likely && m > 0);
    before += m;
  }
  return kept;
}

void check_against_definition(const Masses& masses, const SamplingOptions& o) {
  INFO("top_k " << o.top_k << ", top_p " << o.top_p << ", min_p " << o.min_p << ", ids "
                << masses.size());
  const KeptSet kept = truncate(masses, sum(masses), o);
  const auto expected = kept_by_definition(masses, o);
  std::int64_t mass = 0;
  for (std::size_t id = 0; id < masses.size(); ++id) {
    REQUIRE(kept.keeps(masses[id], static_cast<std::int32_t>(id)) == (expected[id] != 0));
    if (expected[id]) mass += masses[id];
  }
  REQUIRE(kept.mass == mass);
}

// Masses as of a softmax with some ties: the largest is 2^40.
Masses random_masses(RandomStream& random, int n) {
  Masses masses(n);
  const auto shape = random.below(4);
  for (auto& m : masses) {
    if (shape == 0) m = static_cast<std::int64_t>(random.below(4));  // many ties and zeros
    if (shape == 1)
      m = static_cast<std::int64_t>(random.below(std::uint64_t{1} << 40)) + 1;  // flat
    if (shape == 2) m = std::int64_t{1} << random.below(40);                    // steep, ties
    if (shape == 3)
      m = static_cast<std::int64_t>(random.below(std::uint64_t{1} << (1 + random.below(40))));
  }
  masses[random.below(n)] = std::int64_t{1} << 40;
  return masses;
}

}  // namespace

TEST_CASE("small cases by hand") {
  const Masses m{10, 40, 20, 40, 5, 0};
  SECTION("top-k keeps the lowest ids among equals") {
    const KeptSet one = truncate(m, sum(m), options(1, 1, 0));
    CHECK(one.mass == 40);
    CHECK(one.keeps(40, 1));
    CHECK_FALSE(one.keeps(40, 3));
    CHECK(truncate(m, sum(m), options(2, 1, 0)).mass == 80);
    CHECK(truncate(m, sum(m), options(3, 1, 0)).mass == 100);
  }
  SECTION("top-p keeps the fewest that reach the share") {
    CHECK(truncate(m, sum(m), options(0, 0.01f, 0)).mass == 40);
    CHECK(truncate(m, sum(m), options(0, 0.5f, 0)).mass == 80);
    CHECK(truncate(Masses{1, 1, 2}, 4, options(0, 0.5f, 0)).mass == 2);  // exactly reached
    CHECK(truncate(Masses{1, 1, 2}, 4, options(0, 0.51f, 0)).mass == 3);
  }
  SECTION("top-p is a share of what top-k left") {
    CHECK(truncate(m, sum(m), options(2, 0.5f, 0)).mass == 40);
    CHECK(truncate(m, sum(m), options(0, 0.4f, 0)).mass == 80);
  }
  SECTION("min-p is a share of the largest") {
    CHECK(truncate(m, sum(m), options(0, 1, 0.5f)).mass == 100);
    CHECK(truncate(m, sum(m), options(0, 1, 0.51f)).mass == 80);
    CHECK(truncate(m, sum(m), options(0, 1, 0.99f)).mass == 80);
  }
  SECTION("ids without mass are never kept") {
    CHECK_FALSE(truncate(m, sum(m), options(6, 1, 0)).keeps(0, 5));
    CHECK_FALSE(truncate(m, sum(m), options(100, 1, 0)).keeps(0, 5));
  }
}

TEST_CASE("random masses are cut as the definition says") {
  RandomStream random(3, RandomPurpose::kTest, 0, 0);
  for (int round = 0; round < 4000; ++round) {
    const int n =
        static_cast<int>(round % 8 == 0 ? random.between(257, 2500) : random.between(1, 40));
    const Masses masses = random_masses(random, n);
    SamplingOptions o;
    if (random.below(2) == 0) o.top_k = static_cast<int>(random.between(1, n + 3));
    if (random.below(2) == 0) o.top_p = static_cast<float>(random.uniform());
    if (random.below(2) == 0) o.min_p = static_cast<float>(random.uniform() * random.uniform());
    check_against_definition(masses, o);
  }
}

TEST_CASE("long rows that need more than the first sorted prefix") {
  RandomStream random(4, RandomPurpose::kTest, 0, 0);
  Masses flat(9000, 1000), noisy(9000);
  for (auto& m : noisy) m = static_cast<std::int64_t>(1000 + random.below(1000));
  for (const Masses& masses : {flat, noisy})
    for (const float p : {0.02f, 0.0285f, 0.1f, 0.5f, 0.99f, 0.9999f})
      for (const int k : {0, 255, 256, 257, 1024, 8999})
        check_against_definition(masses, options(k, p, 0.0f));
}

TEST_CASE("pick walks the kept ids in order") {
  const Masses m{10, 40, 20, 40, 5, 0};
  const KeptSet kept = truncate(m, sum(m), options(3, 1, 0));  // ids 1, 2, 3
  std::vector<int> counts(m.size(), 0);
  std::int32_t previous = 0;
  for (std::int64_t target = 0; target < kept.mass; ++target) {
    const auto id = pick(m, kept, target);
    REQUIRE(id >= previous);
    previous = id;
    ++counts[id];
  }
  CHECK(counts == std::vector<int>{0, 40, 20, 40, 0, 0});
}
