// SPDX-License-Identifier: Apache-2.0
#include "io/FileLock.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <future>
#include <memory>
#include <thread>

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

// As long as it lives, this process has been asked to stop and has not done so yet.
struct EndingProcess {
  EndingProcess() {
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &signals, &before);
    ::raise(SIGTERM);
  }
  ~EndingProcess() {
    const timespec at_once{};
    ::sigtimedwait(&signals, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  sigset_t signals{}, before{};
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
    CHECK_THROWS_AS(second.require_free(), Error);
    CHECK_THROWS_MATCHES(
        second.try_take(), Error,  // at once
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
  CHECK_NOTHROW(third.require_free());
  CHECK(!fs::exists(f.path));
  CHECK(third.try_take());
}

TEST_CASE("a lock that is given back while another waits is taken") {
  const Fixture f;
  const EndingProcess asked_to_stop;
  auto first = std::make_unique<FileLock>(f.path, "x", kShort);
  first->take();
  FileLock second = f.lock({.beat = 1, .grace = 60, .silence = 60});
  CHECK_NOTHROW(second.require_free());
  CHECK(!second.try_take());
  first.reset();
  CHECK(second.try_take());
}

TEST_CASE("a process that is ending gets some seconds, and no more") {
  const Fixture f;
  const EndingProcess asked_to_stop;
  f.write(detail::this_process());
  FileLock lock = f.lock();
  CHECK(!lock.try_take());
  CHECK_THROWS_AS(lock.take(), Error);
}

TEST_CASE(
    "a process of this machine that still runs has the lock, without any lock of the kernel") {
  const Fixture f;
  f.write(detail::this_process());
  CHECK_THROWS_AS(f.lock().take(), Error);
}

TEST_CASE("a lock is abandoned where its process has surely ended") {
  const Fixture f;
  CHECK(f.lock().is_abandoned());
  f.write(detail::this_process());
  CHECK(!f.lock().is_abandoned());
  f.write(elsewhere());
  CHECK(!f.lock().is_abandoned());
  detail::LockHolder gone = detail::this_process();
  --gone.started;
  f.write(gone);
  CHECK(f.lock().is_abandoned());
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
    FileLock lock = f.lock({.beat = 60});
    lock.take();
    SECTION("in another file") {
      fs::rename(f.path, f.scratch / "kept");  // the number of the file is not used again
    }
    SECTION("taken over in the same file") {}
    spill(f.path, "another one");
  }
  CHECK(slurp(f.path) == "another one");
}

TEST_CASE("who loses the lock notices it at the next beat") {
  const Fixture f;
  std::promise<std::string> said;
  FileLock lock(f.path, "directory x", kShort,
                [&](const std::string& why) { said.set_value(why); });
  lock.take();
  SECTION("a user removes the file") {
    fs::remove(f.path);
  }
  SECTION("another one has taken it over") {
    f.write(elsewhere());
  }
  SECTION("another one is just taking it over") {
    spill(f.path, "");
  }
  auto loss = said.get_future();
  REQUIRE(loss.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
  CHECK_THAT(loss.get(),
             ContainsSubstring("directory x is no longer") && ContainsSubstring("run.lock"));
}

TEST_CASE("two that wait for a silent lock do not keep each other waiting") {
  const Fixture f;
  f.write(elsewhere());
  FileLock lock = f.lock({.beat = 1, .grace = 60, .silence = 0.2});
  bool taken = false;
  for (int i = 0; i < 200 && !taken; ++i) {
    {  // the other one has the kernel's lock while it looks
      const detail::Descriptor other(f.path, O_RDWR);
      REQUIRE(::flock(other.fd(), LOCK_EX) == 0);
      CHECK(!lock.try_take());
    }
    taken = lock.try_take();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(taken);
}

TEST_CASE("a file that is being written is looked at without an error") {
  const Fixture f;
  const std::string text = detail::to_text(elsewhere());
  detail::Descriptor held(f.path, O_RDWR | O_CREAT);
  REQUIRE(::flock(held.fd(), LOCK_EX) == 0);
  std::atomic<bool> over = false;
  std::thread writer([&] {
    while (!over) {
      held.truncate(0);
      held.write_at(0, std::as_bytes(std::span(text.data(), text.size())));
    }
  });
  FileLock lock = f.lock({.beat = 1, .grace = 60, .silence = 60});
  int errors = 0;
  for (int i = 0; i < 20000; ++i) try {
      if (lock.try_take()) ++errors;
    } catch (const Error&) {
      ++errors;
    }
  over = true;
  writer.join();
  CHECK(errors == 0);
}

TEST_CASE("without a thread for its beats a lock is an error, and not left") {
  const Fixture f;
  pthread_attr_t old, huge;
  REQUIRE(pthread_getattr_default_np(&old) == 0);
  REQUIRE(pthread_getattr_default_np(&huge) == 0);
  REQUIRE(pthread_attr_setstacksize(&huge, std::size_t{1} << 47) == 0);  // more than there is
  {
    FileLock lock = f.lock();
    REQUIRE(pthread_setattr_default_np(&huge) == 0);
    CHECK_THROWS_MATCHES(lock.take(), Error, MessageMatches(ContainsSubstring("ulimit")));
    REQUIRE(pthread_setattr_default_np(&old) == 0);
  }
  CHECK(!fs::exists(f.path));
  pthread_attr_destroy(&old);
  pthread_attr_destroy(&huge);
}

TEST_CASE("a lock that is left behind waits for the end of its process") {
  const Fixture f;
  {
    FileLock lock = f.lock();
    lock.take();
    lock.leave_behind();
  }
  CHECK(detail::is_alive(*detail::parse_holder(slurp(f.path))));
  CHECK_THROWS_AS(f.lock().take(), Error);
}
