// SPDX-License-Identifier: Apache-2.0
#include "io/AtomicFile.hpp"

#include <sys/resource.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>

#include "base/Error.hpp"
#include "support/Scratch.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using taper::AtomicFile;
using taper::Error;
using taper::test::Scratch;
using taper::test::slurp;

namespace {

// Files of this process cannot grow beyond a size while it lives: a full disk that needs no disk.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace

TEST_CASE("an atomic file appears at commit only") {
  const Scratch scratch;
  const auto path = scratch / "deep/er/file.txt";
  AtomicFile file(path);
  file.write(std::string_view("one "));
  file.write(std::string_view("two"));
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(std::filesystem::exists(taper::part_path(path)));
  file.commit();
  CHECK(slurp(path) == "one two");
  CHECK_FALSE(std::filesystem::exists(taper::part_path(path)));
}

TEST_CASE("an atomic file without commit leaves the old content and nothing else") {
  const Scratch scratch;
  const auto path = scratch / "file.txt";
  taper::write_file_atomically(path, "old");
  {
    AtomicFile file(path);
    file.write(std::string_view("new"));
    AtomicFile moved(std::move(file));
    moved.write(std::string_view("er"));
  }
  CHECK(slurp(path) == "old");
  CHECK_FALSE(std::filesystem::exists(taper::part_path(path)));
}

TEST_CASE("leftovers of a killed run are overwritten") {
  const Scratch scratch;
  const auto path = scratch / "file.txt";
  taper::test::spill(taper::part_path(path), "a long leftover of a killed run");
  taper::write_file_atomically(path, "new");
  CHECK(slurp(path) == "new");
}

TEST_CASE("commit_file takes over what another library wrote") {
  const Scratch scratch;
  const auto path = scratch / "file.bin";
  taper::test::spill(taper::part_path(path), "bytes");
  taper::commit_file(taper::part_path(path), path);
  CHECK(slurp(path) == "bytes");
  CHECK_THROWS_MATCHES(
      taper::commit_file(scratch / "absent", path), Error,
      MessageMatches(ContainsSubstring("absent") && ContainsSubstring("No such file")));
  CHECK(slurp(path) == "bytes");
}

TEST_CASE("no room is named, and the old file stays") {
  const Scratch scratch;
  const auto path = scratch / "file.bin";
  taper::write_file_atomically(path, "old");
  {
    const SizeLimit limit(4096);
    const std::string big(10000, 'x');
    CHECK_THROWS_MATCHES(taper::write_file_atomically(path, big), Error,
                         MessageMatches(ContainsSubstring("file.bin.part") &&
                                        ContainsSubstring("file size limit reached")));
    AtomicFile file(path);
    CHECK_THROWS_AS(file.descriptor().reserve(10000), Error);
  }
  CHECK(slurp(path) == "old");
  CHECK_FALSE(std::filesystem::exists(taper::part_path(path)));
}

TEST_CASE("a full device is named") {
  if (!std::filesystem::exists("/dev/full")) SKIP("no /dev/full here");
  taper::detail::Descriptor file("/dev/full", 1 /* O_WRONLY */);
  const std::byte byte{};
  CHECK_THROWS_MATCHES(
      file.write_at(0, std::span(&byte, 1)), Error,
      MessageMatches(ContainsSubstring("disk full") && ContainsSubstring("free some space")));
}

TEST_CASE("a directory that cannot be made is named") {
  const Scratch scratch;
  taper::test::spill(scratch / "plain", "");
  CHECK_THROWS_MATCHES(AtomicFile(scratch / "plain/file"), Error,
                       MessageMatches(ContainsSubstring("plain/file")));
}

TEST_CASE("a directory written aside takes its place whole, or leaves nothing") {
  const Scratch scratch;
  std::filesystem::create_directories(scratch / "result");
  taper::test::spill(scratch / "result/old", "old");
  {
    const taper::AsideDirectory aside(scratch / "result.writing");
    taper::test::spill(scratch / "result.writing/new", "half");
  }
  CHECK_FALSE(std::filesystem::exists(scratch / "result.writing"));
  CHECK(slurp(scratch / "result/old") == "old");
  {
    taper::AsideDirectory aside(scratch / "result.writing");
    taper::test::spill(scratch / "result.writing/new", "whole");
    aside.rename_to(scratch / "result");
  }
  CHECK_FALSE(std::filesystem::exists(scratch / "result.writing"));
  CHECK_FALSE(std::filesystem::exists(scratch / "result/old"));
  CHECK_FALSE(std::filesystem::exists(scratch / "result.old"));
  CHECK(slurp(scratch / "result/new") == "whole");
}

TEST_CASE("a directory written aside goes to a place where nothing was") {
  const Scratch scratch;
  taper::AsideDirectory aside(scratch / "result.writing");
  taper::test::spill(scratch / "result.writing/new", "whole");
  aside.rename_to(scratch / "result");
  CHECK_FALSE(std::filesystem::exists(scratch / "result.writing"));
  CHECK(slurp(scratch / "result/new") == "whole");
}

TEST_CASE("a replacement that was cut short is undone or finished") {
  const Scratch scratch;
  const auto target = scratch / "result", old = taper::old_path(target);
  CHECK(old == scratch / "result.old");
  taper::finish_replacement(target);  // nothing there
  CHECK_FALSE(std::filesystem::exists(target));
  std::filesystem::create_directories(old);
  taper::test::spill(old / "file", "former");
  taper::finish_replacement(target);
  CHECK(slurp(target / "file") == "former");
  CHECK_FALSE(std::filesystem::exists(old));
  std::filesystem::create_directories(old);
  taper::finish_replacement(target);
  CHECK(slurp(target / "file") == "former");
  CHECK_FALSE(std::filesystem::exists(old));
}
