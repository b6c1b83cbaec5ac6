// SPDX-License-Identifier: Apache-2.0
#include "planner/PassModel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>

#include "base/Error.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

constexpr PairClass kSame = PairClass::kSameNode, kOther = PairClass::kOtherNode;

std::int64_t law(PassKind kind, int tp, const PassWork& w) {
  const std::int64_t factor = kind == PassKind::kLearn ? 3 : 1;
  return factor * (5000 + 900 * w.rows + std::llround(2 * w.length) * w.rows + 70 * w.targets) / tp;
}

// Passes that follow the law, and steps of 1, 2 and 4 replicas.
LatencyProfile lawful(const std::vector<int>& degrees) {
  LatencyProfile profile;
  for (const int tp : degrees) {
    for (const PassKind kind : {PassKind::kForward, PassKind::kLearn})
      for (const int rows : {64, 256, 1024})
        for (const int length : {32, 64})
          for (const int targets : {0, rows}) {
            const PassWork work{rows, targets, 1.0 * length};
            profile.passes.push_back(
                {kind, tp, kSame, 1, rows, targets, length, law(kind, tp, work), 0, 3});
          }
    for (const int replicas : {1, 2, 4})
      profile.passes.push_back(
          {PassKind::kUpdate, tp, kSame, replicas, 0, 0, 0, 1000 + 8000 / replicas, 0, 3});
  }
  return profile;
}

}  // namespace

TEST_CASE("passes that follow the law are predicted between and beyond the samples") {
  const PassModel model(lawful({1, 2}));
  CHECK(model.degrees() == std::vector{1, 2});
  for (const PassKind kind : {PassKind::kForward, PassKind::kLearn})
    for (const int tp : {1, 2})
      for (const PassWork& work :
           {PassWork{100, 0, 40.0}, PassWork{512, 300, 50.5}, PassWork{4096, 4096, 128.0}}) {
        const auto expected = static_cast<double>(law(kind, tp, work));
        CHECK(std::abs(static_cast<double>(model.pass_ns(kind, tp, kSame, work)) / expected - 1) <
              1e-3);
      }
  CHECK(model.errors().back() < 1e-3);
  CHECK(model.pass_ns(PassKind::kForward, 1, kSame, {}) == 0);
}

TEST_CASE("steps are as measured, and what replicas share out shrinks with their number") {
  const PassModel model(lawful({1}));
  CHECK(model.update_ns(1, 2, kSame) == 5000);
  CHECK(model.update_ns(1, 8, kSame) == 2000);
  CHECK(model.update_ns(1, 2, kOther) == 5000);  // there are no samples of that class
}

TEST_CASE("no price is negative, however noisy the samples") {
  LatencyProfile profile = lawful({1});
  for (std::size_t i = 0; i < profile.passes.size(); ++i)
    profile.passes[i].time_ns += (i % 3 == 0 ? 1 : -1) * profile.passes[i].time_ns / 3;
  const PassModel model(profile);
  std::int64_t before = 0;
  for (const int rows : {1, 10, 100, 1000, 10000}) {
    const std::int64_t ns = model.pass_ns(PassKind::kLearn, 1, kSame, {rows, rows / 2, 64.0});
    CHECK(ns >= before);
    before = ns;
  }
}

TEST_CASE("one length and no targets leave nothing to tell apart, which is no error") {
  LatencyProfile profile;
  for (const int rows : {100, 200, 400})
    profile.passes.push_back({PassKind::kForward, 1, kSame, 1, rows, 0, 50, 10 * rows, 0, 3});
  const PassModel model(profile);
  CHECK(model.degrees().empty());  // no backward passes
  CHECK(std::abs(model.pass_ns(PassKind::kForward, 1, kSame, {300, 0, 50.0}) - 3000) <= 3);
}

TEST_CASE("what was not measured is an error that says what to do") {
  CHECK_THROWS_MATCHES(PassModel(LatencyProfile()), Error,
                       MessageMatches(ContainsSubstring("--passes")));
  const PassModel model(lawful({1}));
  CHECK_THROWS_MATCHES(model.pass_ns(PassKind::kLearn, 2, kSame, {1, 0, 1.0}), Error,
                       MessageMatches(ContainsSubstring("tensor-parallel degree 2")));
}
