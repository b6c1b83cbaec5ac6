// SPDX-License-Identifier: Apache-2.0
#include "base/Log.hpp"

#include <unistd.h>

#include "base/Printable.hpp"

namespace taper {
namespace {

// The listed exception to "no mutable namespace-scope variable": a log line must be possible from
// anywhere.
struct LogState {
  int rank = 0;
  int ranks = 1;
};
LogState& state() {
  static LogState instance;
  return instance;
}

}  // namespace

void set_log_rank(int rank, int ranks) {
  state().rank = rank;
  state().ranks = ranks;
}

int log_rank() {
  return state().rank;
}

void log_line(LogLevel level, const std::string& text) {
  const auto& s = state();
  if (level == LogLevel::kInfo && s.rank != 0) return;
  std::string line;
  if (level == LogLevel::kWarning) line = "warning: ";
  if (level == LogLevel::kError) line = "error: ";
  if (s.ranks > 1 && level > LogLevel::kInfo)
    line = "[rank " + std::to_string(s.rank) + "] " + line;
  line += printable(text);  // may quote any file
  line += '\n';
  // One write keeps the line whole between ranks; a failing stderr leaves nothing sensible to do.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace taper
