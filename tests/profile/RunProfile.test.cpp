// SPDX-License-Identifier: Apache-2.0
#include "profile/RunProfile.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "profile/ProfileFile.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
namespace fs = std::filesystem;

namespace {

ProfileIdentity identity() {
  ProfileIdentity id;
  id.model = {{"layers", "4"}};
  id.machine = {{"cpu", "some"}};
  id.transport = {{"UCX_TLS", "tcp,self"}};
  id.build = {{"git", "1"}};
  return id;
}

}  // namespace

TEST_CASE("a profile is taken where it belongs to the run, else refused with what differs") {
  const TestRanks world;
  const Ranks& ranks = world.ranks;
  const Scratch scratch;
  const fs::path path = scratch / "profile.h5";
  if (ranks.rank() == 0) {
    LatencyProfile p;
    p.identity = identity();
    for (const int tp : {1, 2})
      for (const int context : {1, 2, 3}) {
        StepSample s;
        s.tp = tp;
        s.time_ns = 1000;
        s.context = context;
        s.repeats = 1;
        p.steps.push_back(s);
      }
    p.measured_percent = 30;  // a warning
    write_profile(path, p);
  }
  barrier(ranks.world());
  CHECK(read_matching_profile(path, identity(), ranks, {1, 2}).steps.size() == 6);
  ProfileIdentity newer = identity();
  newer.build["git"] = "2";
  CHECK_NOTHROW(read_matching_profile(path, newer, ranks, {1}));

  const auto refused = [&](const ProfileIdentity& here, const std::string& word) {
    CHECK_THROWS_MATCHES(read_matching_profile(path, here, ranks, {1}), Error,
                         MessageMatches(ContainsSubstring(word) && ContainsSubstring("profile")));
  };
  ProfileIdentity other = identity();
  other.model["layers"] = "30";
  refused(other, "layers");
  other = identity();
  other.machine["cpu"] = "faster";
  refused(other, "cpu");
  other = identity();
  other.transport.clear();
  refused(other, "UCX_TLS");
  CHECK_THROWS_MATCHES(read_matching_profile(path, identity(), ranks, {1, 4}), Error,
                       MessageMatches(ContainsSubstring("degree 4")));
  barrier(ranks.world());
  if (ranks.rank() == 0) fs::remove(path);
  barrier(ranks.world());
  CHECK_THROWS_MATCHES(read_matching_profile(path, identity(), ranks, {1}), Error,
                       MessageMatches(ContainsSubstring("does not exist")));
}
