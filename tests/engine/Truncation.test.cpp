// SPDX-License-Identifier: Apache-2.0
#include "engine/Truncation.hpp"

#include <algorithm>
#include <array>
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

// All ids, or those of the levels to keep, in an order that is no order.
KeptIds cut(const Masses& masses, const SamplingOptions& o, bool by_levels = false) {
  std::array<MassLevel, kMassLevels> levels;
  std::vector<int> level_of(masses.size(), kMassLevels);
  for (std::size_t id = 0; id < masses.size(); ++id) {
    if (masses[id] == 0) continue;
    level_of[id] = 0;
    while (masses[id] < least_mass(level_of[id])) ++level_of[id];
    levels[level_of[id]] += {1, masses[id]};
  }
  const int kept = by_levels ? levels_to_keep(levels, sum(masses), o) : kMassLevels;
  std::vector<WeightedId> heaviest;
  for (std::size_t i = 0; i < masses.size(); ++i) {
    const std::size_t id = masses.size() - 1 - i;
    if (level_of[id] < kept)
      heaviest.push_back(
          {static_cast<std::int32_t>(id), static_cast<float>(masses[id]), masses[id]});
  }
  return truncate(heaviest, sum(masses), o);
}

bool keeps(const KeptIds& kept, int id) {
  return std::any_of(kept.ids.begin(), kept.ids.end(),
                     [&](const WeightedId& k) { return k.id == id; });
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
  const auto expected = kept_by_definition(masses, o);
  std::vector<std::int32_t> ids;
  std::int64_t mass = 0;
  for (std::size_t id = 0; id < masses.size(); ++id) {
    if (!expected[id]) continue;
    ids.push_back(static_cast<std::int32_t>(id));
    mass += masses[id];
  }
  for (const bool by_levels : {false, true}) {
    const KeptIds kept = cut(masses, o, by_levels);
    std::vector<std::int32_t> found;
    for (const WeightedId& id : kept.ids) {
      found.push_back(id.id);
      REQUIRE(id.mass == masses[id.id]);
    }
    REQUIRE(found == ids);
    REQUIRE(kept.mass == mass);
  }
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
    const KeptIds one = cut(m, options(1, 1, 0));
    CHECK(one.mass == 40);
    CHECK(keeps(one, 1));
    CHECK_FALSE(keeps(one, 3));
    CHECK(cut(m, options(2, 1, 0)).mass == 80);
    CHECK(cut(m, options(3, 1, 0)).mass == 100);
  }
  SECTION("top-p keeps the fewest that reach the share") {
    CHECK(cut(m, options(0, 0.01f, 0)).mass == 40);
    CHECK(cut(m, options(0, 0.5f, 0)).mass == 80);
    CHECK(cut(Masses{1, 1, 2}, options(0, 0.5f, 0)).mass == 2);  // exactly reached
    CHECK(cut(Masses{1, 1, 2}, options(0, 0.51f, 0)).mass == 3);
  }
  SECTION("top-p is a share of what top-k left") {
    CHECK(cut(m, options(2, 0.5f, 0)).mass == 40);
    CHECK(cut(m, options(0, 0.4f, 0)).mass == 80);
  }
  SECTION("min-p is a share of the largest") {
    CHECK(cut(m, options(0, 1, 0.5f)).mass == 100);
    CHECK(cut(m, options(0, 1, 0.51f)).mass == 80);
    CHECK(cut(m, options(0, 1, 0.99f)).mass == 80);
  }
  SECTION("ids without mass are never kept") {
    CHECK_FALSE(keeps(cut(m, options(6, 1, 0)), 5));
    CHECK_FALSE(keeps(cut(m, options(100, 1, 0)), 5));
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

TEST_CASE("long rows, flat and noisy") {
  RandomStream random(4, RandomPurpose::kTest, 0, 0);
  Masses flat(9000, 1000), noisy(9000);
  for (auto& m : noisy) m = static_cast<std::int64_t>(1000 + random.below(1000));
  for (const Masses& masses : {flat, noisy})
    for (const float p : {0.02f, 0.0285f, 0.1f, 0.5f, 0.99f, 0.9999f})
      for (const int k : {0, 255, 256, 257, 1024, 8999})
        check_against_definition(masses, options(k, p, 0.0f));
}

TEST_CASE("draws walk the kept ids in order") {
  const Masses m{10, 40, 20, 40, 5, 0};
  const KeptIds kept = cut(m, options(3, 1, 0));  // ids 1, 2, 3
  std::vector<int> counts(m.size(), 0);
  std::int32_t previous = 0;
  for (std::int64_t target = 0; target < kept.mass; ++target) {
    const auto id = kept.at(target).id;
    REQUIRE(id >= previous);
    previous = id;
    ++counts[id];
  }
  CHECK(counts == std::vector<int>{0, 40, 20, 40, 0, 0});
}

TEST_CASE("few levels are asked for where few ids are kept") {
  Masses steep;
  for (int bit = 40; bit >= 0; --bit) steep.push_back(std::int64_t{1} << bit);
  std::array<MassLevel, kMassLevels> levels;
  for (int j = 0; j < kMassLevels; ++j) levels[j] = {1, least_mass(j)};
  CHECK(levels_to_keep(levels, sum(steep), options(3, 1, 0)) == 3);
  CHECK(levels_to_keep(levels, sum(steep), options(0, 0.7f, 0)) == 2);
  CHECK(levels_to_keep(levels, sum(steep), options(0, 1, 0.25f)) == 3);
  CHECK(levels_to_keep(levels, sum(steep), options(3, 0.1f, 0.9f)) == 3);  // top-p's share of them
  CHECK(levels_to_keep(levels, sum(steep), options(0, 1, 0)) == kMassLevels);
}
