// SPDX-License-Identifier: Apache-2.0
#include "kernels/checksum.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>
#include <utility>

#include "kernels/ops/Data.hpp"

using namespace taper;
using namespace taper::test;

namespace {

Staged<std::uint64_t> sums_of(const std::vector<ConstFloatVector>& vectors) {
  const Exec exec;
  const Staged<ConstFloatVector> list = staged(vectors);
  Staged<std::uint64_t> sums(vectors.size(), 0);
  checksums(exec, staging_view(sums), staging_view(list));
  exec.fence();
  return sums;
}

}  // namespace

TEST_CASE("equal values have equal checksums; each bit, place and length counts") {
  Floats x = random_floats(1000, 1);
  const Floats same = x;
  const auto of = [&](const Floats& v, std::size_t from, std::size_t size) {
    return sums_of({ConstFloatVector(v.data() + from, size)})[0];
  };
  const std::uint64_t sum = of(x, 0, 1000);
  CHECK(of(same, 0, 1000) == sum);
  std::set<std::uint64_t> seen{sum, of(x, 0, 999), of(x, 1, 999), of(x, 0, 1), of(x, 0, 0)};
  CHECK(seen.size() == 5);
  std::swap(x[3], x[700]);
  seen.insert(of(x, 0, 1000));
  std::swap(x[3], x[700]);
  CHECK(of(x, 0, 1000) == sum);
  for (std::size_t i = 0; i < x.size(); i += 37) {
    x[i] = -x[i];
    CHECK(seen.insert(of(x, 0, 1000)).second);
    x[i] = -x[i];
  }
  x[5] = 0.0f;
  seen.insert(of(x, 0, 1000));
  x[5] = -0.0f;
  CHECK(seen.insert(of(x, 0, 1000)).second);
}

TEST_CASE("many stretches have a checksum each") {
  const Floats x = random_floats(5000, 2);
  std::vector<ConstFloatVector> vectors;
  for (std::size_t i = 0; i < 40; ++i)
    vectors.emplace_back(x.data() + 100 * i, std::size_t(10) * i + 1);
  const auto together = sums_of(vectors);
  for (std::size_t i = 0; i < vectors.size(); ++i)
    CHECK(together[i] == sums_of(std::vector{vectors[i]})[0]);
  CHECK(std::set(together.begin(), together.end()).size() == 40);
  CHECK(sums_of({}).empty());
}
