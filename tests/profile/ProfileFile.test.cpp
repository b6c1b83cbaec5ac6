// SPDX-License-Identifier: Apache-2.0
#include "profile/ProfileFile.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/Error.hpp"
#include "io/Hdf5File.hpp"
#include "support/Scratch.hpp"
#include "support/synthetic_profile.hpp"

using namespace taper;

namespace {

// A profile in a folder of its own.
struct ScratchFile {
  test::Scratch folder;
  std::filesystem::path path = folder / "profile.h5";
};

LatencyProfile sample() {
  LatencyProfile p = test::synthetic_profile(test::small_model_tcp(), {1, 2});
  p.identity.build = {{"git", "abc"}};
  p.identity.clock = {{"measured", "2026-01-01T00:00:00Z"}, {"governor", ""}};
  p.moves.push_back({PairClass::kOtherNode, 70000, 900});
  p.fit_errors = {{1, PairClass::kSameNode, 1, 2, 3, 4}};
  p.repeat_noise = {{2, PairClass::kOtherNode, 5, 6, 7, 8}};
  p.groups_ns = 5;
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

}  // namespace

TEST_CASE("a profile survives its file") {
  const ScratchFile scratch;
  const LatencyProfile written = sample();
  write_profile(scratch.path, written);
  const LatencyProfile read = read_profile(scratch.path);
  CHECK(content_hash(read) == content_hash(written));
  CHECK(read.steps == written.steps);
  CHECK(read.moves == written.moves);
  CHECK(read.rendezvous == written.rendezvous);
  CHECK(read.fit_errors == written.fit_errors);
  CHECK(read.repeat_noise == written.repeat_noise);
  CHECK(compare_identity(read.identity, written.identity).warnings.empty());
  CHECK(compare_identity(read.identity, written.identity).refusals.empty());
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
