// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>

namespace taper {

enum class LogLevel { kInfo, kWarning, kError };

// Sets the rank that stands before each line; info lines come from rank 0 only. One of the few
// process-wide states of the project (doc/dev/style.md).
void set_log_rank(int rank, int ranks);
int log_rank();

// Writes one line to stderr in one write, so that lines of ranks do not mix. Info lines come from
// rank 0 only; warnings and errors come from every rank, with the rank in front. What a terminal
// would obey is escaped (Printable.hpp).
void log_line(LogLevel level, const std::string& text);

}  // namespace taper

#define TAPER_LOG_(level, message)               \
  do {                                           \
    std::ostringstream taper_line_;              \
    taper_line_ << message;                      \
    ::taper::log_line(level, taper_line_.str()); \
  } while (false)
#define TAPER_INFO(message) TAPER_LOG_(::taper::LogLevel::kInfo, message)
#define TAPER_WARN(message) TAPER_LOG_(::taper::LogLevel::kWarning, message)
#define TAPER_ERROR(message) TAPER_LOG_(::taper::LogLevel::kError, message)
