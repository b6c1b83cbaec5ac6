// SPDX-License-Identifier: Apache-2.0
#include "io/FileLock.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <memory>

#include "base/Error.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
namespace fs = std::filesystem;

namespace {

constexpr FileLockTimes kShort{.beat = 0.02, .grace = 0.05, .silence = 0.5};

struct Fixture {
  FileLock lock(FileLockTimes times = kShort) const { return FileLock(path, "directory x", times); }
  void write(const detail::LockHolder& holder) const { spill(path, detail::to_text(holder)); }

  Scratch scratch;
  fs::path path = scratch / "run.lock";
};

// Of a process that is somewhere else.
detail::LockHolder elsewhere() {
  detail::LockHolder holder = detail::this_process();
  holder.host = "node7";
  holder.place = "another boot";
  holder.slurm_job = "42";
  return holder;
}

}  // namespace

TEST_CASE("one has a lock file, the next one is told who") {
  const Fixture f;
  {
    FileLock first = f.lock();
    REQUIRE(first.try_take());
    const auto holder = detail::parse_holder(slurp(f.path));
    REQUIRE(holder);
    CHECK(holder->process == ::getpid());
    CHECK(detail::is_here(*holder));
    CHECK(detail::is_alive(*holder));
    FileLock second = f.lock();
    CHECK(!second.try_take());  // not refused at once: the first may be about to end
    CHECK_THROWS_MATCHES(
        second.take(), Error,
        MessageMatches(ContainsSubstring("directory x is in use by another job") &&
                       ContainsSubstring("process " + std::to_string(::getpid()) + " on ") &&
                       ContainsSubstring("run.lock")));
    try {
      f.lock().take();
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::kBadInput);
    }
    CHECK(fs::exists(f.path));
  }
  CHECK(!fs::exists(f.path));
  FileLock third = f.lock();
  CHECK(third.try_take());
}

TEST_CASE("a lock that is given back while another waits is taken") {
  const Fixture f;
  auto first = std::make_unique<FileLock>(f.path, "x", kShort);
  first->take();
  FileLock second = f.lock({.beat = 1, .grace = 60, .silence = 60});
  CHECK(!second.try_take());
  first.reset();
  CHECK(second.try_take());
}

TEST_CASE(
    "a process of this machine that still runs has the lock, without any lock of the kernel") {
  const Fixture f;
  f.write(detail::this_process());
  CHECK_THROWS_AS(f.lock().take(), Error);
}

TEST_CASE("the lock of a process that has ended is taken over at once") {
  const Fixture f;
  detail::LockHolder gone = detail::this_process();
  SECTION("its number is another process's now") {
    --gone.started;
  }
  SECTION("its number is nobody's") {
    gone.process = std::int64_t{1} << 40;
  }
  f.write(gone);
  FileLock lock = f.lock({.beat = 1, .grace = 60, .silence = 60});
  REQUIRE(lock.try_take());
  CHECK(detail::parse_holder(slurp(f.path))->started == detail::this_process().started);
}

TEST_CASE("the kernel's lock counts, whatever the file says") {
  const Fixture f;
  const std::string text = GENERATE(as<std::string>{}, "", "whatever", "{\"process\": \"one\"}");
  spill(f.path, text);
  const detail::Descriptor held(f.path, O_RDWR);
  REQUIRE(::flock(held.fd(), LOCK_EX) == 0);
  CHECK_THROWS_MATCHES(f.lock().take(), Error,
                       MessageMatches(ContainsSubstring("where that job is surely over")));
}

TEST_CASE("the lock of another machine is taken over after a silence only") {
  const Fixture f;
  f.write(elsewhere());
  SECTION("silent") {
    FileLock lock = f.lock();
    CHECK(!lock.try_take());
    lock.take();
    CHECK(detail::parse_holder(slurp(f.path))->host != "node7");
  }
  SECTION("a sign of life") {
    FileLock lock = f.lock({.beat = 1, .grace = 60, .silence = 60});
    CHECK(!lock.try_take());
    fs::last_write_time(f.path, fs::last_write_time(f.path) - std::chrono::hours(1));  // its clock
    CHECK_THROWS_MATCHES(
        lock.try_take(), Error,
        MessageMatches(ContainsSubstring("on node7 since ") && ContainsSubstring("Slurm job 42")));
  }
}

TEST_CASE("who has a lock gives signs of life") {
  const Fixture f;
  FileLock lock = f.lock();
  lock.take();
  const auto before = fs::last_write_time(f.path);
  for (int i = 0; i < 500 && fs::last_write_time(f.path) == before; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(fs::last_write_time(f.path) > before);
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
