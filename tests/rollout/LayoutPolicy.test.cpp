// SPDX-License-Identifier: Apache-2.0
#include "rollout/LayoutPolicy.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
#include "support/synthetic_profile.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

const DivisorChain kChain({1, 2});

Snapshot snapshot(const std::string& layout, std::int64_t consultation) {
  const Layout l = parse_layout(layout, kChain);
  return {l, std::vector<ReplicaSnapshot>(l.groups().size()), 0, consultation, 0};
}

}  // namespace

TEST_CASE("a script acts at its consultations and nowhere else") {
  const Plan merge{parse_layout("2x1", kChain), PlanStart::kNow, 0, false};
  ScriptedPolicy policy(parse_layout("1x2", kChain), {{3, merge, true}});
  CHECK(policy.begin({}) == parse_layout("1x2", kChain));
  CHECK_FALSE(policy.decide(snapshot("1x2", 2)).act);
  const Decision decision = policy.decide(snapshot("1x2", 3));
  CHECK(decision.act);
  CHECK(decision.plan == merge);
  CHECK(decision.hash != policy.decide(snapshot("1x2", 2)).hash);
  CHECK(decision.hash == policy.decide(snapshot("1x2", 3)).hash);

  std::vector<SequenceState> sequences(4);
  for (int i = 0; i < 4; ++i) sequences[i] = {i, i / 2, 10, 5, 5, 20};
  const Confirmation c = policy.confirm(merge, snapshot("1x2", 3), sequences);
  REQUIRE(c.act);
  REQUIRE(c.moves.size() == 4);
  for (int i = 0; i < 4; ++i) {
    CHECK(c.moves[i].id == i);
    CHECK(c.moves[i].from == i / 2);
    CHECK(c.moves[i].to == 0);
    CHECK(c.moves[i].kv == (i % 2 == 1 ? KvAction::kRecompute : KvAction::kMove));
  }
}

TEST_CASE("what another version has learned is refused with what can be done") {
  PredictivePolicy policy(test::synthetic_profile(test::small_model_tcp(), {1, 2}), kChain, {});
  auto words = policy.save();
  CHECK_NOTHROW(policy.load(words));
  CHECK_NOTHROW(policy.require_loadable(words));
  REQUIRE(!words.empty());
  --words.front();  // the version
  const auto before = policy.save();
  CHECK_THROWS_AS(policy.require_loadable(words), Error);
  CHECK(policy.save() == before);
  CHECK_THROWS_MATCHES(policy.load(words), Error,
                       MessageMatches(ContainsSubstring("of another version") &&
                                      ContainsSubstring("Rollout/Mode=static") &&
                                      ContainsSubstring("--resume none")));
}
