// SPDX-License-Identifier: Apache-2.0
#include "io/FileLock.hpp"

#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <memory>

#include "base/Error.hpp"
#include "io/Json.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
namespace fs = std::filesystem;

namespace {

struct Fixture {
  FileLock lock(double grace = 0.0) const {
    return FileLock(path, "directory x", std::chrono::duration<double>(grace));
  }

  Scratch scratch;
  fs::path path = scratch / "run.lock";
};

// Of a process that is somewhere else.
const char* const kElsewhere =
    R"({"host": "node7", "process": 1, "since": "2026-01-31T12:00:00Z", "slurm_job": "42"})";

}  // namespace

TEST_CASE("one has a lock file, the next one is told who") {
  const Fixture f;
  {
    FileLock first = f.lock();
    REQUIRE(first.try_take());
    CHECK(FileLock::is_held(f.path));
    CHECK(Json::parse(slurp(f.path))["process"] == ::getpid());
    FileLock second = f.lock();
    CHECK_THROWS_AS(second.try_free(), Error);
    CHECK_THROWS_MATCHES(
        second.try_take(), Error,
        MessageMatches(ContainsSubstring("directory x is in use by another job") &&
                       ContainsSubstring("process " + std::to_string(::getpid()) + " on ") &&
                       ContainsSubstring("run.lock")));
    try {
      f.lock().take();
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::kBadInput);
    }
    CHECK(fs::exists(f.path));
  }
  CHECK(!fs::exists(f.path));
  FileLock third = f.lock();
  CHECK(third.try_free());
  CHECK(!fs::exists(f.path));
  CHECK(third.try_take());
}

TEST_CASE("a lock that is given back while another waits is taken") {
  const Fixture f;
  auto first = std::make_unique<FileLock>(f.path, "x");
  first->take();
  FileLock second = f.lock(60);
  CHECK(!second.try_free());
  CHECK(!second.try_take());
  first.reset();
  CHECK(second.try_free());
  CHECK(second.try_take());
}

TEST_CASE("a holder that may be ending gets some seconds, and no more") {
  const Fixture f;
  FileLock first = f.lock();
  first.take();
  FileLock second = f.lock(0.2);
  CHECK(!second.try_take());
  CHECK_THROWS_AS(second.take(), Error);
}

TEST_CASE("the kernel's lock counts, whatever the file says") {
  const Fixture f;
  const std::string text = GENERATE(as<std::string>{}, "", "whatever", "{\"process\": \"one\"}");
  spill(f.path, text);
  const detail::Descriptor held(f.path, O_RDWR);
  REQUIRE(::flock(held.fd(), LOCK_EX) == 0);
  CHECK_THROWS_MATCHES(f.lock().take(), Error,
                       MessageMatches(ContainsSubstring("if that job has certainly ended")));
}

TEST_CASE("what nobody holds is taken over, whatever the file says") {
  const Fixture f;
  const std::string text = GENERATE(as<std::string>{}, "", "whatever", kElsewhere);
  spill(f.path, text);
  CHECK(!FileLock::is_held(f.path));
  FileLock lock = f.lock();
  REQUIRE(lock.try_take());
  CHECK(Json::parse(slurp(f.path))["process"] == ::getpid());
}

TEST_CASE("the lock of a killed process is free at once, its file still there") {
  const Fixture f;
  const pid_t child = ::fork();
  if (child == 0) {
    FileLock lock = f.lock();
    lock.take();
    ::pause();
  }
  while (!FileLock::is_held(f.path)) ::usleep(1000);
  CHECK_THROWS_AS(f.lock().take(), Error);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(fs::exists(f.path));
  CHECK(f.lock().try_free());
  CHECK(f.lock().try_take());
}

TEST_CASE("a file of somebody else is not removed") {
  const Fixture f;
  {
    FileLock lock = f.lock();
    lock.take();
    fs::rename(f.path, f.scratch / "kept");  // the number of the file is not used again
    spill(f.path, "another one");
  }
  CHECK(slurp(f.path) == "another one");
}

TEST_CASE("a lock that is left behind is held until the end of its process") {
  const Fixture f;
  {
    FileLock lock = f.lock();
    lock.take();
    lock.leave_behind();
  }
  CHECK(fs::exists(f.path));
  CHECK(FileLock::is_held(f.path));
  CHECK_THROWS_AS(f.lock().take(), Error);
}

TEST_CASE("a lock file that cannot be written is an error that names it") {
  CHECK_THROWS_MATCHES(FileLock("/proc/nowhere/run.lock", "x").take(), Error,
                       MessageMatches(ContainsSubstring("/proc/nowhere/run.lock")));
}
