// SPDX-License-Identifier: Apache-2.0
#include "base/Version.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cctype>

using namespace taper;

TEST_CASE("a build says what it is, in the words that result files repeat") {
  const BuildInfo info = build_info();
  CHECK(std::isdigit(static_cast<unsigned char>(info.version.front())));
  CHECK(info.version.find('.') != std::string::npos);
  const bool is_hash = info.git_hash.find_first_not_of("0123456789abcdef") == std::string::npos;
  CHECK((info.git_hash == "unknown" || is_hash || info.git_hash.ends_with("-dirty")));
  CHECK(!info.compiler.empty());
  CHECK(!info.build_type.empty());
}
