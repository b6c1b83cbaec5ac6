// SPDX-License-Identifier: Apache-2.0
#include "io/Descriptor.hpp"

#include <fcntl.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <utility>

#include "base/Error.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using detail::Descriptor;

TEST_CASE("what is written at an offset is read there, and bytes beyond the end are an error") {
  const test::Scratch scratch;
  Descriptor file(scratch / "data", O_RDWR | O_CREAT);
  const std::array<std::byte, 3> abc{std::byte{1}, std::byte{2}, std::byte{3}};
  file.write_at(5, abc);
  CHECK(file.size() == 8);
  std::array<std::byte, 3> read{};
  file.read_at(5, read);
  CHECK(read == abc);
  CHECK_THROWS_MATCHES(file.read_at(6, read), Error, MessageMatches(ContainsSubstring("data")));
  file.truncate(2);
  CHECK(file.size() == 2);
  file.close();
  CHECK(!file.is_open());
}

TEST_CASE("a file that cannot be opened is named with the reason, unless that was expected") {
  const test::Scratch scratch;
  CHECK_THROWS_MATCHES(Descriptor(scratch / "none", O_RDONLY), Error,
                       MessageMatches(ContainsSubstring("none") && ContainsSubstring("No such")));
  CHECK(!Descriptor::open_unless(ENOENT, scratch / "none", O_RDONLY));
  CHECK_THROWS_AS(Descriptor::open_unless(EEXIST, scratch / "none", O_RDONLY), Error);
}

TEST_CASE("a descriptor that is moved leaves nothing open behind") {
  const test::Scratch scratch;
  Descriptor first(scratch / "data", O_RDWR | O_CREAT);
  const int fd = first.fd();
  Descriptor second = std::move(first);
  CHECK(second.fd() == fd);
  CHECK(second.is_open());
  CHECK(!first.is_open());  // NOLINT(bugprone-use-after-move): that is the question
}

TEST_CASE("a full disk is named as one") {
  CHECK_THAT(detail::describe_errno(ENOSPC), ContainsSubstring("disk full"));
}
