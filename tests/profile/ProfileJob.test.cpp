// SPDX-License-Identifier: Apache-2.0
#include "profile/ProfileJob.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <set>

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

struct World : TestRanks {
  explicit World(const std::string& nodes_of = "") {
    ranks.hosts = gather_host_map(ranks.world(), find_place(node(nodes_of)));
  }
  // "aabb": ranks 0 and 1 on node a, 2 and 3 on node b.
  std::string node(const std::string& nodes_of) const {
    return nodes_of.empty() ? "" : nodes_of.substr(ranks.rank(), 1);
  }
  ProfileOptions options() const {
    ProfileOptions o;
    o.probe.max_positions = 128;
    o.probe.max_batch = 3;
    o.probe.step_rows = 24;
    o.probe.kv_memory_mb = 8;
    o.budget = 1e-3;  // the coarse grid, twice
    o.output = (scratch / "profile.h5").string();
    return o;
  }
  LatencyProfile profile(const ProfileOptions& o,
                         const std::string& model = TAPER_DATA_DIR "/model") {
    ModelFiles files(model);
    return ProfileJob(o, files, ranks).run();
  }

  Scratch scratch;
};

// The job must fail on rank 0, before any collective that the others would wait in.
void refuses(World& w, const ProfileOptions& o, const std::string& model,
             const std::vector<std::string>& words) {
  ModelFiles files(model);
  std::string message;
  try {
    const ProfileJob job(o, files, w.ranks);
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::kBadInput);
    message = e.what();
  }
  if (w.ranks.rank() == 0) {
    for (const auto& word : words) CHECK_THAT(message, ContainsSubstring(word));
  } else {
    CHECK(message.empty());
  }
  barrier(w.ranks.world());
}

}  // namespace

TEST_CASE("a profile has every degree with decode and prompt steps, errors, noise and costs") {
  World w;
  const ProfileOptions o = w.options();
  const LatencyProfile measured = w.profile(o);
  if (w.ranks.rank() != 0) return;
  const LatencyProfile p = read_profile(o.output);
  CHECK(content_hash(p) == content_hash(measured));
  CHECK(p.problems().empty());
  CHECK(p.ranks == world_size());
  CHECK(p.ranks_per_node == world_size());
  CHECK(p.degrees() == w.ranks.chain.degrees());
  CHECK(p.kv_bytes_per_position == 4 * 4 * 2 * 64 * 4);
  CHECK(p.identity.model.at("hidden") == "256");
  CHECK(p.fit_errors.size() == p.degrees().size());
  CHECK(p.repeat_noise.size() == p.degrees().size());
  for (const int degree : p.degrees()) {
    std::set<int> batches;
    int prompts = 0;
    for (const StepSample& s : p.steps) {
      if (s.tp != degree) continue;
      CHECK(s.time_ns > 0);
      CHECK(s.repeats >= ProfileSchedule::kLeastVisits);
      if (s.new_tokens == s.sequences)
        batches.insert(s.sequences);
      else
        ++prompts;
    }
    CHECK(*batches.begin() == 1);
    CHECK(*batches.rbegin() == 3 * degree);
    CHECK(prompts >= 2);
    const auto verified = std::count_if(p.verify.begin(), p.verify.end(), [&](const auto& s) {
      return s.tp == degree && s.new_tokens > s.sequences && s.time_ns > 0;
    });
    CHECK(verified >= 3);
  }
  REQUIRE(p.rendezvous.size() == (world_size() > 1 ? 1u : 0u));
  for (const RendezvousCost& r : p.rendezvous) {
    CHECK(r.ranks == world_size());
    CHECK(r.ns > 0);
  }
  CHECK(p.moves.size() == (world_size() > 1 ? 1u : 0u));
  for (const MoveCost& m : p.moves) CHECK(m.ps_per_byte > 0);
  CHECK(p.weights_ns > 0);
  CHECK(!p.is_complete());  // the budget is tiny
  CHECK(load_partial(o.output).ended);
}

TEST_CASE("more work of the same kind takes longer: 40 times the tokens, say") {
  World w;
  ProfileOptions o = w.options();
  o.probe.step_rows = 64;
  const LatencyProfile p = w.profile(o);
  if (w.ranks.rank() != 0) return;
  const auto time = [&](int tokens) {
    std::int64_t least = 0;
    for (const StepSample& s : p.steps)
      if (s.tp == 1 && s.new_tokens == tokens && s.sequences == 1)
        least = least == 0 ? s.time_ns : std::min(least, s.time_ns);
    return least;
  };
  REQUIRE(time(1) > 0);
  CHECK(time(64) > 2 * time(1));
}

TEST_CASE("virtual nodes have costs of their own") {
  if (world_size() != 4) return;
  World w("aabb");
  const ProfileOptions o = w.options();
  w.profile(o);
  if (w.ranks.rank() != 0) return;
  const LatencyProfile p = read_profile(o.output);
  CHECK(p.ranks_per_node == 2);
  REQUIRE(p.moves.size() == 2);
  CHECK(p.moves[0].pair == PairClass::kSameNode);
  CHECK(p.moves[1].pair == PairClass::kOtherNode);
  for (const StepSample& s : p.steps)
    CHECK(s.pair == (s.tp == 4 ? PairClass::kOtherNode : PairClass::kSameNode));
}

TEST_CASE("an interrupted profile goes on without measuring anything again") {
  World w;
  ProfileOptions o = w.options();
  o.output = (w.scratch / "whole.h5").string();
  w.profile(o);
  std::vector<std::int64_t> kept{0};
  const std::string output = (w.scratch / "resumed.h5").string();
  if (w.ranks.rank() == 0) {
    // What a killed job leaves: the same settings, all points, one visit each so far.
    const LatencyProfile whole = read_profile(o.output);
    ProfileRecord r;
    r.identity = whole.identity;
    r.settings = {{"degrees", ""},
                  {"max_positions", "128"},
                  {"max_batch", "3"},
                  {"step_rows", "24"},
                  {"kv_memory_mb", std::to_string(8.0)}};
    for (const int degree : whole.degrees())
      r.settings["degrees"] += (r.settings["degrees"].empty() ? "" : ",") + std::to_string(degree);
    r.seconds_spent = 5;
    for (const StepSample& s : whole.steps)
      r.points.push_back({s.tp, s.pair, {s.new_tokens, s.sequences, s.context}, {{777, 777, 777}}});
    kept[0] = static_cast<std::int64_t>(r.points.size());
    save_partial(output, r);
  }
  o.output = output;
  w.profile(o);
  if (w.ranks.rank() != 0) return;
  const LatencyProfile p = read_profile(output);
  CHECK(static_cast<std::int64_t>(p.steps.size()) == kept[0]);
  for (const StepSample& s : p.steps) {
    CHECK(s.time_ns == 777);  // the lower median of two visits: the old one was kept
    CHECK(s.repeats > 3);
    CHECK(s.repeats <= 3 + 12 * world_size());
  }
}

TEST_CASE("a profile that its budget cut short goes on where it is started again") {
  if (world_size() > 2) return;  // takes long there, and shows no more than on two ranks
  World w;
  ProfileOptions o = w.options();
  w.profile(o);
  const bool first = w.ranks.rank() == 0;
  const auto visits = [&] {
    std::size_t sum = 0;
    if (first)
      for (const ProfilePoint& p : load_partial(o.output).points) sum += p.visits.size();
    return sum;
  };
  const std::size_t before = visits();
  o.budget = 0.2;  // more than is spent already, or not: it counts from here
  w.profile(o);
  if (first) {
    CHECK(visits() > before);
    fs::remove(partial_path(o.output));  // without it there is nothing to go on from
  }
  barrier(w.ranks.world());
  w.profile(o);
  if (first) CHECK(fs::exists(partial_path(o.output)));
}

TEST_CASE("a complete profile is not measured again, unless asked for") {
  World w;
  ProfileOptions o = w.options();
  w.profile(o);
  const bool first = w.ranks.rank() == 0;  // the folder goes when rank 0 is done
  if (first) {
    LatencyProfile complete = read_profile(o.output);
    complete.measured_percent = 100;
    write_profile(o.output, complete);
    fs::remove(partial_path(o.output));
  }
  const auto time = [&] { return first ? fs::last_write_time(o.output) : fs::file_time_type(); };
  const auto before = time();
  const LatencyProfile again = w.profile(o);
  CHECK(time() == before);
  if (first) CHECK(content_hash(again) == content_hash(read_profile(o.output)));
  o.fresh = true;
  w.profile(o);
  if (first) CHECK(time() != before);
}

TEST_CASE("what belongs to another model, or other settings, is refused") {
  World w;
  const ProfileOptions o = w.options();
  w.profile(o);
  refuses(w, o, TAPER_GOLDEN_DIR "/models/llama_a", {"profile.h5", "hidden", "--fresh"});
  ProfileOptions f32 = o;
  f32.probe.type = WeightType::kF32;
  refuses(w, f32, TAPER_DATA_DIR "/model", {"profile.h5", "dtype", "bf16"});
  if (w.ranks.rank() == 0) {
    ProfileRecord r;
    r.identity = read_profile(o.output).identity;
    r.settings = {{"max_batch", "99"}};
    save_partial(o.output, r);
  }
  refuses(w, o, TAPER_DATA_DIR "/model", {"profile.h5.partial", "--fresh"});
  if (w.ranks.rank() == 0) std::ofstream(partial_path(o.output), std::ios::trunc) << "{\"format";
  refuses(w, o, TAPER_DATA_DIR "/model", {"profile.h5.partial"});
  if (w.ranks.rank() == 0) {
    fs::remove(partial_path(o.output));
    std::ofstream(o.output, std::ios::trunc) << "no HDF5";
  }
  refuses(w, o, TAPER_DATA_DIR "/model", {"profile.h5"});
}

TEST_CASE("bad options and outputs that cannot be written are refused") {
  World w;
  ProfileOptions o = w.options();
  o.output = w.scratch.path().string();
  refuses(w, o, TAPER_DATA_DIR "/model", {"is a directory"});
  o = w.options();
  ModelFiles files(TAPER_DATA_DIR "/model");
  o.budget = -1;
  CHECK_THROWS_MATCHES(ProfileJob(o, files, w.ranks), Error,
                       MessageMatches(ContainsSubstring("budget")));
  o = w.options();
  o.degrees = {5};  // no degree of the chain
  CHECK_THROWS_AS(ProfileJob(o, files, w.ranks), Error);
}
