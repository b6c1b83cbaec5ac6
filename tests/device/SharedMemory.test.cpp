// SPDX-License-Identifier: Apache-2.0
#include "device/SharedMemory.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <optional>

#include "device/ArenaMemory.hpp"
#include "support/Messages.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;

namespace {

// Exit code of a process of its own that runs `work`.
template <class Work>
int in_child(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) try {
      ::_exit(work());
    } catch (...) {
      ::_exit(99);
    }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("what one process writes another one reads, and it is zero before") {
  constexpr std::int64_t kBytes = 3 * ArenaMemory::kLargePage + 100;
  const SharedMemory made(kBytes);
  CHECK(reinterpret_cast<std::uintptr_t>(made.base()) % ArenaMemory::kLargePage == 0);
  CHECK(made.base()[kBytes - 1] == 0);
  made.base()[kBytes - 1] = 5;
  CHECK(in_child([&] {
          const SharedMemory seen(made.name());
          seen.base()[0] = 7;
          return seen.base() != made.base() ? seen.base()[kBytes - 1] : 0;
        }) == 5);
  CHECK(made.base()[0] == 7);
}

TEST_CASE("memory lives as long as anyone has it") {
  std::optional<SharedMemory> made(std::in_place, 100);
  const SharedMemory seen(made->name());
  made->base()[3] = 9;
  made.reset();
  CHECK(seen.base()[3] == 9);
}

TEST_CASE("populating changes no value, and no bytes are allowed") {
  SharedMemory made(ArenaMemory::kLargePage);
  made.base()[1] = 2;
  made.populate();
  CHECK(made.base()[1] == 2);
  CHECK(SharedMemory(0).bytes() == 0);
}

TEST_CASE("something else of the same name is not mapped") {
  const SharedMemory made(100);
  SharedMemory::Name other = made.name();
  other.bytes = 200;
  CHECK_THAT(message_of([&] { SharedMemory{other}; }), ContainsSubstring("is something else"));
}

TEST_CASE("what is not there cannot be mapped") {
  SharedMemory::Name gone;
  {
    const SharedMemory made(100);
    gone = made.name();
  }
  CHECK_THAT(
      message_of([&] { SharedMemory{gone}; }),
      ContainsSubstring("cannot be mapped (/proc/") && ContainsSubstring("TAPER_SHARE_WEIGHTS=no"));
}
