// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "support/Scratch.hpp"

namespace taper::test {

// What `action` writes to stderr, where the log goes, on this rank. Collective over world.
template <class Action>
std::string logged_by(const Action& action) {
  const Scratch scratch;
  const auto path = scratch / ("stderr-" + std::to_string(::getpid()));
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  const int saved = ::dup(STDERR_FILENO);
  REQUIRE((file >= 0 && saved >= 0));
  ::dup2(file, STDERR_FILENO);
  action();
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  ::close(file);
  return slurp(path);
}

}  // namespace taper::test
