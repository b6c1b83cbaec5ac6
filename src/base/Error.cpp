// SPDX-License-Identifier: Apache-2.0
#include "base/Error.hpp"

#include <filesystem>
#include <new>

namespace taper {

void require_no_problems(const std::vector<std::string>& problems, const std::string& where,
                         ExitCode code) {
  if (problems.empty()) return;
  throw Error(code, where.empty() ? problems.front() : where + ": " + problems.front());
}

std::string describe(const std::exception& error) {
  const std::string text = error.what();
  if (dynamic_cast<const Error*>(&error) != nullptr) return text;
  if (dynamic_cast<const std::filesystem::filesystem_error*>(&error) != nullptr)
    return text + " (check path, permissions and free space)";
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return "out of memory (the machine, ulimit -v or the batch system allows no more); lower the "
           "lengths and batches, or use more hosts";
  return text + " (unexpected)";
}

namespace detail {

void throw_broken_contract(const char* kind, const char* condition, const char* file, int line) {
  TAPER_FAIL(ExitCode::kFailure, kind << " failed: " << condition << " at " << file << ":" << line
                                      << " (a bug in Taper; please report it)");
}

}  // namespace detail
}  // namespace taper
