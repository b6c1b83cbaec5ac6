// SPDX-License-Identifier: Apache-2.0
#include "profile/ProfileFile.hpp"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "io/Hdf5File.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"
#include "support/synthetic_profile.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

// A profile of this rank in a folder of its own.
struct ScratchFile {
  test::Scratch folder;
  std::filesystem::path path = folder / ("profile-" + std::to_string(::getpid()) + ".h5");
};

LatencyProfile sample() {
  LatencyProfile p = test::synthetic_profile(test::small_model_tcp(), {1, 2});
  p.identity.build = {{"git", "abc"}};
  p.identity.clock = {{"measured", "2026-01-01T00:00:00Z"}, {"governor", ""}};
  p.moves.push_back({PairClass::kOtherNode, 70000, 900});
  p.fit_errors = {{1, PairClass::kSameNode, 1, 2, 3, 4}};
  p.repeat_noise = {{2, PairClass::kOtherNode, 5, 6, 7, 8}};
  p.groups_ns = 5;
  p.verify = {{1, PairClass::kSameNode, 8, 4, 400, 12345, 67, 8}};
  p.passes = {{PassKind::kLearn, 2, PairClass::kSameNode, 1, 512, 256, 64, 9876543, 21, 3},
              {PassKind::kUpdate, 1, PairClass::kOtherNode, 4, 0, 0, 0, 55555, 4, 3}};
  return p;
}

std::string message_of(const std::filesystem::path& path) {
  try {
    read_profile(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

ProfileIdentity identity() {
  ProfileIdentity id;
  id.model = {{"layers", "4"}};
  id.machine = {{"cpu", "some"}};
  id.transport = {{"UCX_TLS", "tcp,self"}};
  id.build = {{"git", "1"}};
  return id;
}

}  // namespace

TEST_CASE("a profile survives its file") {
  const ScratchFile scratch;
  const LatencyProfile written = sample();
  write_profile(scratch.path, written);
  const LatencyProfile read = read_profile(scratch.path);
  CHECK(content_hash(read) == content_hash(written));
  CHECK(read.steps == written.steps);
  CHECK(read.verify == written.verify);
  CHECK(read.passes == written.passes);
  CHECK(read.moves == written.moves);
  CHECK(read.rendezvous == written.rendezvous);
  CHECK(read.fit_errors == written.fit_errors);
  CHECK(read.repeat_noise == written.repeat_noise);
  CHECK(compare_identity(read.identity, written.identity).warnings.empty());
  CHECK(compare_identity(read.identity, written.identity).refusals.empty());
}

TEST_CASE("settings that change no speed, which earlier versions wrote, are not read") {
  const ScratchFile file;
  LatencyProfile written = sample();
  written.identity.transport["MPIR_CVAR_CH3_INTERFACE_HOSTNAME"] = "node7";
  write_profile(file.path, written);
  CHECK(read_profile(file.path).identity.transport == sample().identity.transport);
}

TEST_CASE("passes of training are in a file only if they were measured, and must be possible") {
  const ScratchFile scratch;
  LatencyProfile written = sample();
  const std::uint64_t with = content_hash(written);
  written.passes[0].targets = 513;  // of 512 rows
  CHECK(written.problems().size() == 1);
  written.passes.clear();
  CHECK(content_hash(written) != with);
  write_profile(scratch.path, written);
  CHECK_FALSE(Hdf5File::open_read(scratch.path).exists("/passes"));
  CHECK(read_profile(scratch.path).passes.empty());
}

TEST_CASE("a profile without guesses is one of before, byte for byte in what is hashed") {
  const ScratchFile scratch;
  LatencyProfile written = sample();
  const std::uint64_t with = content_hash(written);
  written.verify.clear();
  CHECK(content_hash(written) != with);
  write_profile(scratch.path, written);
  CHECK_FALSE(Hdf5File::open_read(scratch.path).exists("/verify"));
  CHECK(read_profile(scratch.path).verify.empty());
}

TEST_CASE("how much was measured survives too, and cannot be changed") {
  const ScratchFile scratch;
  LatencyProfile p = sample();
  p.measured_percent = 40;
  CHECK(content_hash(p) != content_hash(sample()));
  write_profile(scratch.path, p);
  CHECK(read_profile(scratch.path).measured_percent == 40);
  p.measured_percent = 0;
  CHECK_THROWS_AS(write_profile(scratch.path, p), Error);
}

TEST_CASE("a profile with problems is not written") {
  const ScratchFile scratch;
  LatencyProfile p = sample();
  p.steps[0].time_ns = 0;
  CHECK_THROWS_AS(write_profile(scratch.path, p), Error);
  CHECK_FALSE(std::filesystem::exists(scratch.path));
}

TEST_CASE("damage is found wherever it is") {
  const ScratchFile scratch;
  write_profile(scratch.path, sample());
  std::ifstream in(scratch.path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::uint64_t right = content_hash(sample());
  int found = 0;
  for (std::size_t at = 64; at < bytes.size(); at += 397) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    std::ofstream(scratch.path, std::ios::binary | std::ios::trunc) << damaged;
    // What is read is right, or an error that names the file. Unused bytes may change.
    try {
      const LatencyProfile read = read_profile(scratch.path);
      CHECK(content_hash(read) == right);
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find(scratch.path.filename().string()) != std::string::npos);
      ++found;
    }
  }
  CHECK(found > 10);
}

TEST_CASE("other files, missing files and a wrong sum are named") {
  const ScratchFile scratch;
  CHECK(message_of(scratch.path).find("does not exist") != std::string::npos);
  {
    Hdf5File file = Hdf5File::create(scratch.path);
    file.set_attribute("/", "format", "other");
  }
  CHECK(message_of(scratch.path).find("is not a file of format taper-profile") !=
        std::string::npos);
  std::filesystem::resize_file(scratch.path, 100);
  CHECK_FALSE(message_of(scratch.path).empty());
}

TEST_CASE("a profile is taken where it belongs to the run, else refused with what differs") {
  const test::TestRanks world;
  const Ranks& ranks = world.ranks;
  const test::Scratch scratch;
  const std::filesystem::path path = scratch / "profile.h5";
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
  if (ranks.rank() == 0) std::filesystem::remove(path);
  barrier(ranks.world());
  CHECK_THROWS_MATCHES(read_matching_profile(path, identity(), ranks, {1}), Error,
                       MessageMatches(ContainsSubstring("does not exist")));
}

TEST_CASE("the table names degrees, errors, noise and costs") {
  LatencyProfile p;
  StepSample s;
  s.tp = 2;
  s.pair = PairClass::kOtherNode;
  s.new_tokens = s.sequences = 4;
  s.context = 400;
  s.time_ns = 1234567;
  s.repeats = 9;
  p.steps.push_back(s);
  p.fit_errors.push_back({2, PairClass::kOtherNode, 12300, 45600, 50000, 60000});
  p.repeat_noise.push_back({2, PairClass::kOtherNode, 7800, 9900, 10000, 20000});
  p.moves.push_back({PairClass::kOtherNode, 25000, 2000});
  p.rendezvous.push_back({2, 61000});
  p.weights_ns = 1500;
  const std::string table = to_table(p);
  for (const char* part :
       {"   2  other node", "1.235", "1.23 /  4.56", "0.78 /  0.99", "25.0 us and 0.50 GB/s",
        "rendezvous of 2 ranks: 61.0 us", "weights 1.5 us"})
    CHECK_THAT(table, ContainsSubstring(part));
  CHECK_THAT(table, ContainsSubstring("measured: complete\n"));
}

TEST_CASE("an incomplete profile says so, and what to do") {
  LatencyProfile p;
  CHECK(completeness_problem(p).empty());
  p.measured_percent = 7;
  CHECK_THAT(to_table(p), ContainsSubstring("measured: incomplete, 7 % of what was planned\n"));
  CHECK_THAT(completeness_problem(p), ContainsSubstring("7 %") && ContainsSubstring("resumes"));
}

TEST_CASE("a profile that a busy machine has measured says so") {
  LatencyProfile p;
  CHECK(noise_problem(p).empty());
  FitError quiet, busy;
  quiet.tp = 1;
  quiet.p50 = 49'000;
  busy.tp = 2;
  busy.p50 = 108'000;
  p.repeat_noise = {quiet};
  CHECK(noise_problem(p).empty());
  p.repeat_noise = {quiet, busy};
  CHECK_THAT(noise_problem(p), ContainsSubstring("TP 2") && ContainsSubstring("10.8 %") &&
                                   ContainsSubstring("--fresh"));
}
