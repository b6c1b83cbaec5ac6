// SPDX-License-Identifier: Apache-2.0
//
// These programs fork beside MPI, which jobs never do: the child touches nothing of it.
#include "workers/Spawner.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <thread>

#include "base/Error.hpp"
#include "base/TextFile.hpp"
#include "base/Timer.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

// Within a time that only a fault exceeds.
template <class Condition>
bool comes_true(Condition&& condition) {
  const Timer timer;
  while (!condition()) {
    if (timer.seconds() > 20) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// Also if nobody has taken it off the table of processes, as in containers without an init.
bool is_gone(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  return text.empty() || text.substr(text.rfind(')') + 2).starts_with('Z');
}

std::string read_all(const SpawnedWorker& worker) {
  std::string text;
  comes_true([&] {
    char part[256];
    const ssize_t n = ::read(worker.from.fd(), part, sizeof part);
    if (n > 0) text.append(part, static_cast<std::size_t>(n));
    return n == 0;
  });
  return text;
}

struct Fixture {
  test::Scratch scratch;
  std::string log = (scratch / "worker.log").string();
  WorkerCommand shell(const std::string& script) { return {{"sh", "-c", script}, {"X=7"}, log}; }
};

}  // namespace

TEST_CASE("workers have pipes, a log, and the environment without the launcher's") {
  Fixture f;
  ::setenv("PMI_RANK", "3", 1);
  Spawner spawner;
  const auto worker =
      spawner.start(f.shell("read a; echo \"$a $X ${PMI_RANK:-none}\"; echo problem >&2"));
  ::unsetenv("PMI_RANK");
  REQUIRE(::write(worker.to.fd(), "hello\n", 6) == 6);
  CHECK(read_all(worker) == "hello 7 none\n");
  CHECK(spawner.stop(worker.pid, Spawner::Moment::kToLeave) == "exited with code 0");
  CHECK(read_text_file(f.log) == "problem\n");
}

TEST_CASE("workers end when they are told to, and say how") {
  Fixture f;
  Spawner spawner;
  const auto sleeper = spawner.start(f.shell("sleep 600"));
  CHECK_THAT(spawner.stop(sleeper.pid, Spawner::Moment::kNone),
             ContainsSubstring("ended by signal 9"));
  CHECK(is_gone(sleeper.pid));
  const auto failed = spawner.start(f.shell("exit 3"));
  CHECK(spawner.stop(failed.pid, Spawner::Moment::kToLeave) == "exited with code 3");
  const auto parent = spawner.start(f.shell("sleep 600 & echo $!; wait"));
  pid_t child = 0;
  comes_true([&] {
    char text[32] = {};
    if (::read(parent.from.fd(), text, sizeof text - 1) > 0) child = std::atoi(text);
    return child > 0;
  });
  REQUIRE(child > 0);
  spawner.stop(parent.pid, Spawner::Moment::kNone);
  CHECK(comes_true([&] { return is_gone(child); }));  // with all of its session
}

TEST_CASE("programs and logs that cannot be opened are bad input") {
  Fixture f;
  Spawner spawner;
  CHECK_THROWS_MATCHES(spawner.start({{"no-such-program", "x"}, {}, f.log}), Error,
                       MessageMatches(ContainsSubstring("'no-such-program x' cannot be started") &&
                                      ContainsSubstring("No such file")));
  CHECK_THROWS_MATCHES(spawner.start({{"sh"}, {}, (f.scratch / "no/log").string()}), Error,
                       MessageMatches(ContainsSubstring("no/log")));
  const auto worker = spawner.start(f.shell("exit 0"));  // it goes on
  CHECK(spawner.stop(worker.pid, Spawner::Moment::kToLeave) == "exited with code 0");
}

TEST_CASE("the end of the spawner is the end of all workers") {
  Fixture f;
  auto spawner = std::make_unique<Spawner>();
  const auto stubborn = spawner->start(f.shell("trap '' TERM INT HUP; while :; do sleep 1; done"));
  auto leaving = spawner->start(f.shell("cat >/dev/null; echo bye >&2"));
  const pid_t stubborn_pid = stubborn.pid, leaving_pid = leaving.pid;
  SECTION("in order") {
    leaving.to.reset();
    spawner.reset();
    CHECK(is_gone(stubborn_pid));
    CHECK(is_gone(leaving_pid));
    CHECK(read_text_file(f.log) == "bye\n");  // it had a moment to leave by itself
  }
  SECTION("killed") {
    ::kill(spawner->pid(), SIGKILL);
    CHECK(comes_true([&] { return is_gone(stubborn_pid); }));
    CHECK(comes_true([&] { return is_gone(leaving_pid); }));
    CHECK_THROWS_MATCHES(spawner->start(f.shell("exit 0")), Error,
                         MessageMatches(ContainsSubstring("is gone")));
  }
}

TEST_CASE("workers die with the rank, however that ends") {
  Fixture f;
  int pipe_ends[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  const pid_t rank = ::fork();
  if (rank == 0) {  // a rank that is killed while its worker hangs
    Spawner spawner;
    const auto worker = spawner.start(f.shell("trap '' HUP; while :; do sleep 1; done"));
    const pid_t pids[2] = {spawner.pid(), worker.pid};
    if (::write(pipe_ends[1], pids, sizeof pids) == sizeof pids) ::kill(::getpid(), SIGKILL);
    ::_exit(1);
  }
  pid_t pids[2] = {};
  REQUIRE(::read(pipe_ends[0], pids, sizeof pids) == sizeof pids);
  int status = 0;
  REQUIRE(::waitpid(rank, &status, 0) == rank);
  CHECK(WIFSIGNALED(status));
  CHECK(comes_true([&] { return is_gone(pids[1]); }));
  CHECK(comes_true([&] { return is_gone(pids[0]); }));
}
