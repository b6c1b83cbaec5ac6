// SPDX-License-Identifier: Apache-2.0
#include "run/StatusFile.hpp"

#include <algorithm>
#include <exception>
#include <fstream>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "io/AtomicFile.hpp"
#include "io/Json.hpp"

namespace taper {
namespace {

const char* name_of(RunState state) {
  switch (state) {
    case RunState::kPending:
      return "pending";
    case RunState::kRunning:
      return "running";
    case RunState::kCompleted:
      return "completed";
    case RunState::kStopped:
      return "stopped";
    case RunState::kFailed:
      return "failed";
  }
  return "";
}

}  // namespace

void StatusFile::write(RunState state, std::int64_t iteration, const std::string& why) const {
  OrderedJson status;
  status["state"] = name_of(state);
  status["iteration"] = iteration;
  status["iterations"] = iterations_ ? *iterations_ : number("iterations");
  status["time"] = utc_text();
  if (!why.empty()) status["why"] = why;
  // Ranks may fail at the same time: each has a side file of its own.
  const std::filesystem::path part =
      path_.string() + ".part-" + std::to_string(std::max(log_rank(), 0));
  {
    std::ofstream file(part, std::ios::binary);
    file << status.dump(2) << std::endl;
    if (!file) {
      file.close();
      std::error_code ignored;
      std::filesystem::remove(part, ignored);
      TAPER_FAIL(ExitCode::kFailure, path_text(part) << " cannot be written (disk full?)");
    }
  }
  // A rank that fails is about to be ended by the others: no time for the disk.
  if (state == RunState::kFailed)
    std::filesystem::rename(part, path_);
  else
    commit_file(part, path_);
}

std::int64_t StatusFile::number(const char* name) const {
  if (!std::filesystem::exists(path_)) return 0;
  try {
    return read_json_file(path_).value(name, std::int64_t{0});
  } catch (const std::exception&) {
    return 0;
  }
}

void StatusFile::write_failure(const std::string& why) const noexcept {
  try {
    write(RunState::kFailed, last_iteration(), why);
  } catch (const std::exception& problem) {
    TAPER_WARN("the failure is not in status.json: " << problem.what());
  }
}

}  // namespace taper
