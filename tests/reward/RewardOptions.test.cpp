// SPDX-License-Identifier: Apache-2.0
#include "reward/RewardOptions.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("every rule is a kind of reward of the same name") {
  const auto kinds = named_reward_kinds();
  for (const auto& [name, rule] : named_reward_rules()) {
    CHECK(rule_of(kind_of(rule)) == rule);
    bool found = false;
    for (const auto& [text, kind] : kinds) found = found || (text == name && kind == kind_of(rule));
    CHECK(found);
  }
  CHECK(!rule_of(RewardKind::kCommand));
  CHECK(!rule_of(RewardKind::kNone));
}

TEST_CASE("penalties for the form shape, all else does not") {
  for (const auto& [name, kind] : named_reward_kinds()) {
    INFO(name);
    CHECK(is_shaping(kind) == (name == "length" || name == "overlong" || name == "repetition"));
  }
}

TEST_CASE("names must fit metrics and files") {
  RewardOptions o;
  o.kind = RewardKind::kTask;
  for (const char* name : {"a", "right_2", "Well-Formed"}) {
    o.name = name;
    CHECK(o.problems().empty());
  }
  for (const char* name : {"", "a/b", "a b", "..", "\xC3\xA9"}) {
    o.name = name;
    CHECK(o.problems().size() == 1);
  }
}

TEST_CASE("a model needs a directory") {
  RewardOptions o;
  o.name = "preferred";
  o.kind = RewardKind::kModel;
  REQUIRE(o.problems().size() == 1);
  CHECK(o.problems().front().find("Rewards/preferred/Directory is not set") == 0);
  o.model.directory = "rewards";
  CHECK(o.problems().empty());
}

TEST_CASE("an adaptive timeout fits the other limits of its command") {
  const auto problem = [](auto change) -> std::string {
    RewardOptions o;
    o.name = "p";
    o.kind = RewardKind::kCommand;
    o.command.command = {"judge"};
    o.command.on_error = OnError::kZero;
    o.adaptive_timeout.on = true;
    CHECK(o.problems().empty());
    change(o);
    const auto problems = o.problems();
    return problems.size() == 1 ? problems.front() : "";
  };
  const std::string section = "Rewards/p/Adaptive Timeout";
  CHECK(problem([](auto& o) { o.adaptive_timeout.least = 31; }) ==
        section + "/Least is 31, but " + section + "/Most is 30; lower Least or raise Most");
  CHECK(problem([](auto& o) { o.command.timeout = 20; }) ==
        section +
            "/Most is 30, but no answer may take longer than Rewards/p/Timeout, 20; lower "
            "Most or raise Timeout");
  CHECK(problem([](auto& o) {
          o.command.on_error = OnError::kFail;
        }).starts_with(section + " cuts answers"));
}

TEST_CASE("penalties need numbers that they can be reckoned with") {
  const auto problem = [](RewardKind kind, auto change) -> std::string {
    RewardOptions o;
    o.name = "p";
    o.kind = kind;
    CHECK(o.problems().empty());
    change(o);
    const auto problems = o.problems();
    return problems.size() == 1 ? problems.front() : "";
  };
  const auto length = RewardKind::kLength, overlong = RewardKind::kOverlong,
             repetition = RewardKind::kRepetition;
  CHECK(problem(length, [](auto& o) { o.length.target = -1; }).starts_with("Rewards/p/Target "));
  CHECK(problem(length, [](auto& o) {
          o.length.per_token = -1;
        }).starts_with("Rewards/p/Per Token "));
  CHECK(problem(length, [](auto& o) { o.length.lowest = 1; }).starts_with("Rewards/p/Lowest "));
  CHECK(problem(overlong, [](auto& o) { o.overlong.limit = -1; }).starts_with("Rewards/p/Limit "));
  CHECK(problem(overlong, [](auto& o) { o.overlong.buffer = 0; }).starts_with("Rewards/p/Buffer "));
  CHECK(
      problem(overlong, [](auto& o) { o.overlong.factor = -1; }).starts_with("Rewards/p/Factor "));
  CHECK(problem(repetition, [](auto& o) { o.repetition.n = 0; }).starts_with("Rewards/p/N "));
  CHECK(problem(repetition, [](auto& o) {
          o.repetition.penalty = -1;
        }).starts_with("Rewards/p/Penalty "));
}
