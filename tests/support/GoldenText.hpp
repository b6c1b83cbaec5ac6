// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch_message.hpp>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/Error.hpp"

namespace taper::testing {

inline std::filesystem::path golden_folder() {
  return std::filesystem::path(TAPER_SOURCE_DIR) / "tests/golden/text";
}

inline nlohmann::json read_golden(const std::string& name) {
  std::ifstream file(golden_folder() / name);
  REQUIRE(file);
  return nlohmann::json::parse(file);
}

// What the Error thrown by action says; fails if none is thrown.
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::kBadInput);
    return error.what();
  }
  FAIL("no Error was thrown");
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace taper::testing
