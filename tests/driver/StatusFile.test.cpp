// SPDX-License-Identifier: Apache-2.0
#include "driver/StatusFile.hpp"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <regex>

#include "io/Json.hpp"

using namespace taper;
namespace fs = std::filesystem;

namespace {

struct Scratch {
  Scratch() : path(fs::temp_directory_path() / ("taper-status-" + std::to_string(::getpid()))) {
    fs::create_directories(path);
  }
  ~Scratch() { fs::remove_all(path); }
  Json status() const { return read_json_file(path / "status.json"); }
  fs::path path;
};

}  // namespace

TEST_CASE("status.json says where a run stands") {
  const Scratch scratch;
  const StatusFile file(scratch.path, 45);
  file.write(RunState::kPending, 0);
  CHECK(scratch.status()["state"] == "pending");
  file.write(RunState::kRunning, 7);
  CHECK(scratch.status()["state"] == "running");
  CHECK(scratch.status()["iteration"] == 7);
  CHECK(scratch.status()["iterations"] == 45);
  CHECK(!scratch.status().contains("why"));
  const auto time = scratch.status()["time"].get<std::string>();
  CHECK(std::regex_match(time, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")));
  file.write(RunState::kStopped, 8, "SIGTERM");
  CHECK(scratch.status()["state"] == "stopped");
  CHECK(scratch.status()["why"] == "SIGTERM");
  file.write(RunState::kCompleted, 45);
  CHECK(scratch.status()["state"] == "completed");
  CHECK(std::distance(fs::directory_iterator(scratch.path), {}) == 1);  // no side files
}

TEST_CASE("a failure keeps the iteration, and never fails itself") {
  const Scratch scratch;
  const StatusFile file(scratch.path, 3);
  file.write_failure("no model");
  CHECK(scratch.status()["iteration"] == 0);
  file.write(RunState::kRunning, 2);
  file.write_failure("disk \"full\"");
  CHECK(scratch.status()["state"] == "failed");
  CHECK(scratch.status()["iteration"] == 2);
  CHECK(scratch.status()["why"] == "disk \"full\"");
  std::ofstream(scratch.path / "status.json") << "no JSON";
  CHECK_NOTHROW(file.write_failure("x"));
  CHECK_NOTHROW(StatusFile("/proc/nowhere", 3).write_failure("x"));
}
