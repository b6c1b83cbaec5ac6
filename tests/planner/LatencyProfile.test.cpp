// SPDX-License-Identifier: Apache-2.0
#include "planner/LatencyProfile.hpp"

#include <catch2/catch_test_macros.hpp>

#include "base/Error.hpp"
#include "support/synthetic_profile.hpp"

using namespace taper;

TEST_CASE("a profile knows its degrees and refuses those it lacks") {
  const LatencyProfile p = test::synthetic_profile(test::small_model_tcp(), {1, 2, 4});
  CHECK(p.problems().empty());
  CHECK(p.degrees() == std::vector{1, 2, 4});
  CHECK_NOTHROW(require_degrees(p, {1, 4}));
  try {
    require_degrees(p, {1, 8});
    FAIL("degree 8 was accepted");
  } catch (const Error& error) {
    CHECK(std::string(error.what())
              .find("does not contain tensor-parallel degree 8 (it has 1, 2, 4)") !=
          std::string::npos);
  }
}

TEST_CASE("a degree with too few decode steps to interpolate between is refused") {
  LatencyProfile p = test::synthetic_profile(test::small_model_tcp(), {1, 2});
  int left = kLeastDecodePoints - 1;
  std::erase_if(p.steps, [&](const StepSample& s) {
    return s.tp == 2 && s.new_tokens == s.sequences && left-- <= 0;
  });
  CHECK_NOTHROW(require_degrees(p, {1}));
  try {
    require_degrees(p, {1, 2});
    FAIL("two decode steps were accepted");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("has 2 decode steps of tensor-parallel degree 2") !=
          std::string::npos);
  }
}

TEST_CASE("model, machine and transport bind a profile; build and clock warn") {
  ProfileIdentity a;
  a.model = {{"layers", "4"}};
  a.machine = {{"cpu", "x"}};
  a.transport = {{"netmod", "tcp"}};
  a.build = {{"git", "1"}};
  a.clock = {{"mhz", "2000"}};
  CHECK(compare_identity(a, a).refusals.empty());
  CHECK(compare_identity(a, a).warnings.empty());
  for (const auto facts :
       {&ProfileIdentity::model, &ProfileIdentity::machine, &ProfileIdentity::transport,
        &ProfileIdentity::build, &ProfileIdentity::clock}) {
    const bool binds = facts != &ProfileIdentity::build && facts != &ProfileIdentity::clock;
    ProfileIdentity b = a;
    (b.*facts).begin()->second += "0";
    CHECK(compare_identity(a, b).refusals.size() == (binds ? 1u : 0u));
    CHECK(compare_identity(a, b).warnings.size() == (binds ? 0u : 1u));
    b = a;
    (b.*facts)["new"] = "fact";
    CHECK(compare_identity(a, b).refusals.size() == (binds ? 1u : 0u));
    CHECK(compare_identity(b, a).warnings.size() == (binds ? 0u : 1u));
  }
  ProfileIdentity b = a;
  b.model["layers"] = "30";
  CHECK(compare_identity(a, b).refusals.front() ==
        "the profile was measured with model layers '4' (here it is '30')");
  b = a;
  b.model["arithmetic"] = "bf16";
  CHECK(compare_identity(a, b).refusals.front() ==
        "the profile was measured with model arithmetic 'f32' (here it is 'bf16'; --arithmetic of "
        "taper profile, Model/Arithmetic of runs)");
}

TEST_CASE("a difference in binding, threads or waiting is told in words, with what to do") {
  ProfileIdentity a, b;
  a.machine = {{"pinned", "no"}, {"threads_per_rank", "1"}};
  b.machine = {{"pinned", "yes"}, {"threads_per_rank", "4"}};
  const auto texts = compare_identity(a, b).refusals;
  REQUIRE(texts.size() == 2);
  CHECK(texts[0].find("measured on ranks that are not pinned and may run on all cores of the host "
                      "(here: ranks that are pinned, each to some of the host's cores; start taper "
                      "profile and the run in the same way") != std::string::npos);
  CHECK(texts[1].find("measured on 1 thread per rank (here: 4 threads per rank; ") !=
        std::string::npos);
  a.transport = {{"waiting", "yields"}};
  b.transport = {{"waiting", "blocks"}};
  CHECK(compare_identity(a, b).refusals[2].find("'yields'") == std::string::npos);
}

TEST_CASE("impossible samples are problems") {
  const LatencyProfile good = test::synthetic_profile(test::small_model_tcp(), {1, 2});
  const auto spoiled = [&](auto spoil) {
    LatencyProfile p = good;
    spoil(p);
    return p.problems().size();
  };
  CHECK(spoiled([](auto& p) { p.steps.clear(); }) == 1);
  CHECK(spoiled([](auto& p) { p.steps[3].time_ns = 0; }) == 1);
  CHECK(spoiled([](auto& p) { p.steps[3].new_tokens = 0; }) == 1);
  CHECK(spoiled([](auto& p) { p.steps.push_back(p.steps[3]); }) == 1);
  const auto verify = [&](std::int64_t context, int guesses) {
    return spoiled([&](auto& p) {
      p.verify.push_back(p.steps[3]);
      p.verify[0].new_tokens = p.verify[0].sequences + guesses;
      p.verify[0].context = context;
    });
  };
  CHECK(verify(1000, 1) == 0);
  CHECK(verify(1000, 0) == 1);
  CHECK(verify(0, 1) == 1);
  CHECK(spoiled([](auto& p) { p.steps[3].context = p.steps[3].new_tokens - 1; }) == 1);
  CHECK(spoiled([](auto& p) { p.moves[0].ps_per_byte = -1; }) == 1);
  CHECK(spoiled([](auto& p) { p.ranks_per_node = 0; }) == 1);
  CHECK(spoiled([](auto& p) { p.graphs_ns = -1; }) == 1);
  CHECK(spoiled([](auto& p) {
          std::erase_if(p.steps, [](const StepSample& s) {
            return s.tp == 2 && s.new_tokens == s.sequences;
          });
        }) == 1);
}

TEST_CASE("the class of a group follows from the nodes that it touches") {
  LatencyProfile p;
  p.ranks = 8;
  p.ranks_per_node = 4;
  CHECK(p.pair_of(0, 4) == PairClass::kSameNode);
  CHECK(p.pair_of(4, 2) == PairClass::kSameNode);
  CHECK(p.pair_of(0, 8) == PairClass::kOtherNode);
  const std::vector<int> threes{0, 0, 0, 1, 1, 1};
  CHECK(pair_class(0, 2, threes) == PairClass::kSameNode);
  CHECK(pair_class(2, 2, threes) == PairClass::kOtherNode);
}

TEST_CASE("the content hash sees every field") {
  const LatencyProfile p = test::synthetic_profile(test::small_model_tcp(), {1, 2});
  const auto changed = [&](auto change) {
    LatencyProfile q = p;
    change(q);
    return content_hash(q) != content_hash(p);
  };
  CHECK(content_hash(p) == content_hash(LatencyProfile(p)));
  CHECK(changed([](auto& q) { q.identity.clock["a"] = "b"; }));
  CHECK(changed([](auto& q) { ++q.steps.back().spread_ns; }));
  CHECK(changed([](auto& q) { ++q.moves.back().latency_ns; }));
  CHECK(changed([](auto& q) { ++q.rendezvous.back().ns; }));
  CHECK(changed([](auto& q) { ++q.kv_bytes_per_position; }));
  CHECK(changed([](auto& q) { q.fit_errors.push_back({}); }));
}
