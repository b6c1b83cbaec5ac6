// SPDX-License-Identifier: Apache-2.0
#include "run/StatusFile.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cctype>
#include <fstream>

#include "io/Json.hpp"
#include "support/Scratch.hpp"

using namespace taper;
namespace fs = std::filesystem;

namespace {

struct RunFolder {
  Json status() const { return read_json_file(path / "status.json"); }

  test::Scratch scratch;
  fs::path path = scratch.path();
};

}  // namespace

TEST_CASE("status.json says where a run stands") {
  const RunFolder run;
  const StatusFile file(run.path, 45);
  file.write(RunState::kPending, 0);
  CHECK(run.status()["state"] == "pending");
  file.write(RunState::kRunning, 7);
  CHECK(run.status()["state"] == "running");
  CHECK(run.status()["iteration"] == 7);
  CHECK(run.status()["iterations"] == 45);
  CHECK(!run.status().contains("why"));
  auto time = run.status()["time"].get<std::string>();
  for (char& c : time)
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) c = '0';
  CHECK(time == "0000-00-00T00:00:00Z");
  file.write(RunState::kStopped, 8, "SIGTERM");
  CHECK(run.status()["state"] == "stopped");
  CHECK(run.status()["why"] == "SIGTERM");
  file.write(RunState::kCompleted, 45);
  CHECK(run.status()["state"] == "completed");
  CHECK(std::distance(fs::directory_iterator(run.path), {}) == 1);  // no side files
}

TEST_CASE("a failure keeps the iteration, and never fails itself") {
  const RunFolder run;
  const StatusFile file(run.path, 3);
  file.write_failure("no model");
  CHECK(run.status()["iteration"] == 0);
  file.write(RunState::kRunning, 2);
  file.write_failure("disk \"full\"");
  CHECK(run.status()["state"] == "failed");
  CHECK(run.status()["iteration"] == 2);
  CHECK(run.status()["why"] == "disk \"full\"");
  std::ofstream(run.path / "status.json") << "no JSON";
  CHECK_NOTHROW(file.write_failure("x"));
  CHECK_NOTHROW(StatusFile(fs::path("/proc/nowhere"), 3).write_failure("x"));
}

TEST_CASE("who does not know the number of iterations keeps the one of the file") {
  const RunFolder run;
  const StatusFile unknown(run.path);
  unknown.write_failure("no model");
  CHECK(run.status()["iterations"] == 0);
  StatusFile(run.path, 45).write(RunState::kRunning, 7);
  unknown.write_failure("rank 1 is gone");
  CHECK(run.status()["state"] == "failed");
  CHECK(run.status()["iteration"] == 7);
  CHECK(run.status()["iterations"] == 45);
}

TEST_CASE("a failure outside the run itself leaves the status as it was") {
  const RunFolder run;
  FailureNote note(StatusFile(run.path, 3));
  note.status.write(RunState::kCompleted, 3);
  note.write("found before the run");
  CHECK(run.status()["state"] == "completed");
  note.armed = true;
  note.write("rank 1 is gone");
  CHECK(run.status()["state"] == "failed");
  CHECK(run.status()["why"] == "rank 1 is gone");
}
