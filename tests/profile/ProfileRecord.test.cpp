// SPDX-License-Identifier: Apache-2.0
#include "profile/ProfileRecord.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "base/Error.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using taper::test::Scratch;
namespace fs = std::filesystem;

namespace {

ProfileRecord some_record() {
  ProfileRecord r;
  r.identity.model = {{"layers", "4"}};
  r.settings = {{"max_batch", "64"}};
  r.seconds_spent = 12.5;
  r.budget = 45;
  r.first_round = 3.25;
  r.ended = true;
  r.points.push_back({2, PairClass::kOtherNode, {64, 1, 300}, {{5, 6}, {7, 8, 9}}});
  r.points.push_back({1, PairClass::kSameNode, {1, 1, 30}, {}});
  r.points.push_back({1, PairClass::kSameNode, {8, 4, 100, 1}, {{3}}});
  return r;
}

}  // namespace

TEST_CASE("a profile in the making is written and read") {
  const Scratch scratch;
  const fs::path output = scratch / "profile.h5";
  CHECK(partial_path(output) == scratch / "profile.h5.partial");
  const ProfileRecord r = some_record();
  save_partial(output, r);
  const ProfileRecord back = load_partial(output);
  CHECK(back.identity.model == r.identity.model);
  CHECK(back.settings == r.settings);
  CHECK(back.seconds_spent == r.seconds_spent);
  CHECK(back.budget == r.budget);
  CHECK(back.first_round == r.first_round);
  CHECK(back.ended);
  CHECK(back.points == r.points);
}

TEST_CASE("what is no profile in the making is refused by name") {
  const Scratch scratch;
  const fs::path output = scratch / "p.h5";
  for (const char* text : {"{\"format\": 1}", "{\"format\": 99}", "[]", "{\"format\"", ""}) {
    INFO(text);
    std::ofstream(partial_path(output), std::ios::trunc) << text;
    CHECK_THROWS_MATCHES(load_partial(output), Error,
                         MessageMatches(ContainsSubstring("p.h5.partial")));
  }
}

TEST_CASE("another identity is refused with what differs") {
  ProfileIdentity a, b;
  a.model = b.model = {{"layers", "4"}};
  a.build = b.build = {{"git", "1"}};
  for (const auto completeness : {Completeness::kPartial, Completeness::kComplete})
    CHECK_NOTHROW(require_same_identity("p.h5", completeness, a, b));
  b.build["git"] = "2";
  CHECK_NOTHROW(require_same_identity("p.h5", Completeness::kComplete, a, b));
  CHECK_THROWS_MATCHES(require_same_identity("p.h5", Completeness::kPartial, a, b), Error,
                       MessageMatches(ContainsSubstring("git") && ContainsSubstring("--fresh")));
  b.model["layers"] = "30";
  CHECK_THROWS_MATCHES(require_same_identity("p.h5", Completeness::kComplete, a, b), Error,
                       MessageMatches(ContainsSubstring("layers") && ContainsSubstring("'30'")));
}
