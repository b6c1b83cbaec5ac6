// SPDX-License-Identifier: Apache-2.0
#include "device/Arena.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/Error.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEST_CASE("a plan says why its total is less than the sum") {
  MemoryPlan plan;
  plan.add("weights", MemoryPhase::kAlways, 100);
  plan.add("cache", plan.phase("generation"), 1000);
  CHECK(plan.table().find("one after the other") == std::string::npos);
  plan.add("gradients", plan.phase("training"), 300);
  CHECK_THAT(plan.table(),
             ContainsSubstring("(generation and training use the same memory, one after "
                               "the other: the larger of both counts)\n"));
}

TEST_CASE("generation and training share addresses, what is always there stands before them") {
  MemoryPlan plan;
  plan.add("weights", MemoryPhase::kAlways, 100);
  plan.add("cache", plan.phase("generation"), 1000);
  plan.add("gradients", plan.phase("training"), 300);
  plan.add("gradients", plan.phase("training"), 300);
  CHECK(plan.items().size() == 3);
  CHECK(plan.total() == 128 + 1024);  // items are rounded up to 64 bytes
  Arena arena(plan);
  auto* weights = static_cast<char*>(arena.take("weights", MemoryPhase::kAlways, 100));
  auto* cache = static_cast<char*>(arena.take("cache", plan.phase("generation"), 1000));
  auto* first = static_cast<char*>(arena.take("gradients", plan.phase("training"), 300));
  auto* second = static_cast<char*>(arena.take("gradients", plan.phase("training"), 300));
  CHECK(cache == weights + 128);
  CHECK(first == cache);
  CHECK(second == first + 320);
  CHECK(cache[999] == 0);
}

TEST_CASE("a critic works in the memory of generation and training, under its own name") {
  MemoryPlan plan;
  plan.add("weights", MemoryPhase::kAlways, 100);
  plan.add("cache", plan.phase("generation"), 1000);
  plan.add("gradients", plan.phase("training"), 300);
  const MemoryOwner critic{"critic", plan.phase("critic")};
  plan.add(critic.item("gradients"), critic.phase, 2000);
  CHECK(MemoryOwner().item("gradients") == "gradients");
  CHECK(plan.total() == 128 + 2048);
  CHECK_THAT(plan.table(), ContainsSubstring("critic gradients") &&
                               ContainsSubstring("(generation, training and critic use the "
                                                 "same memory, one after the other: the largest of "
                                                 "them counts)\n"));
  Arena arena(plan);
  auto* cache = arena.take("cache", plan.phase("generation"), 1000);
  CHECK(arena.take("critic gradients", plan.phase("critic"), 2000) == cache);
}

TEST_CASE("models of one kind can have phases of their own") {
  MemoryPlan plan;
  const MemoryPhase first = plan.phase("policy a"), second = plan.phase("policy b");
  CHECK(first != second);
  CHECK(first != MemoryPhase::kAlways);
  CHECK(plan.phase("policy a") == first);
  plan.add("weights", MemoryPhase::kAlways, 64);
  plan.add("gradients", first, 64);
  plan.add("gradients", second, 640);
  CHECK(plan.bytes(first) == 64);
  CHECK(plan.total() == 64 + 640);
  Arena arena(plan);
  CHECK(arena.take("gradients", first, 64) == arena.take("gradients", second, 640));
}

TEST_CASE("what ranks share has a place of its own, and is counted by the one that makes it") {
  const auto plan_of = [](bool makes) {
    MemoryPlan plan;
    plan.add("weights", MemoryPhase::kAlways, 1000, MemoryKind::kModel, {"domain 0", 3, makes});
    plan.add("weights", MemoryPhase::kAlways, 24, MemoryKind::kModel, {"domain 0", 3, makes});
    plan.add("cache", plan.phase("generation"), 64);
    return plan;
  };
  const MemoryPlan making = plan_of(true), other = plan_of(false);
  CHECK(making.total() == 1088 + 64);
  CHECK(other.total() == 64);
  CHECK(making.unshared() == 64);
  CHECK(other.unshared() == 64);
  CHECK(making.uncounted() == 0);
  CHECK(other.uncounted() == 1088);
  CHECK_THAT(making.table(), ContainsSubstring("weights, shared by 3 ranks") &&
                                 !ContainsSubstring("counted by another rank"));
  CHECK_THAT(other.table(), ContainsSubstring("shared, counted by another rank"));

  Arena::Copies made, mapped;
  const std::string copy = making.items().front().copy();
  const SharedMemory& memory = made.emplace(copy, SharedMemory(1088)).first->second;
  mapped.emplace(copy, SharedMemory(memory.name()));
  Arena first(making, std::move(made)), second(other, std::move(mapped));
  const auto take = [](Arena& arena, std::int64_t bytes) {
    return arena.take<char>("weights", MemoryPhase::kAlways, bytes);
  };
  take(first, 1000);
  take(second, 1000);
  char* const here = take(first, 24);
  char* const there = take(second, 24);
  CHECK(here != there);
  here[5] = 42;
  CHECK(there[5] == 42);
  MemoryPlan torn = plan_of(true);
  CHECK_THROWS_MATCHES(torn.add("weights", MemoryPhase::kAlways, 24), Error,
                       MessageMatches(ContainsSubstring("shared with different ranks")));
  CHECK_THROWS_MATCHES(Arena(other), Error, MessageMatches(ContainsSubstring("copy is missing")));
}

TEST_CASE("more than was planned is a bug, not bad input") {
  MemoryPlan plan;
  plan.add("cache", plan.phase("generation"), 64);
  Arena arena(plan);
  const auto code_of = [&](const char* name, std::int64_t bytes) {
    try {
      arena.take(name, plan.phase("generation"), bytes);
    } catch (const Error& e) {
      return e.code();
    }
    return ExitCode::kDone;
  };
  CHECK(code_of("cache", 65) == ExitCode::kFailure);
  CHECK(code_of("weights", 1) == ExitCode::kFailure);
  CHECK(code_of("cache", 64) == ExitCode::kDone);
  CHECK_THROWS_MATCHES(arena.take("cache", plan.phase("generation"), 1), Error,
                       MessageMatches(ContainsSubstring("0 bytes left of 64")));
}
