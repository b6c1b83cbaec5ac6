// SPDX-License-Identifier: Apache-2.0
#include "results/SchemaProcess.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>

#include "base/Error.hpp"
#include "base/Path.hpp"

namespace taper {
namespace {

// One line each: format, version, number of datasets, then faults and notes by their first letter.
std::string to_lines(const SchemaReport& report) {
  const auto line = [](std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text + "\n";
  };
  std::string text = line(report.format) + std::to_string(report.version) + "\n" +
                     std::to_string(report.datasets) + "\n";
  for (const std::string& fault : report.faults) text += "F" + line(fault);
  for (const std::string& note : report.notes) text += "N" + line(note);
  return text;
}

SchemaReport of_lines(const std::string& text) {
  SchemaReport report;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, report.format);
  lines >> report.version >> report.datasets;
  std::getline(lines, line);
  while (std::getline(lines, line))
    (line.starts_with('F') ? report.faults : report.notes).push_back(line.substr(1));
  return report;
}

// Never returns.
[[noreturn]] void check_and_tell(const std::filesystem::path& file, int pipe) {
  // Libraries print long reports of a crash.
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) std::signal(signal, SIG_DFL);
  std::fflush(nullptr);
  const std::string text = to_lines(check_schema(file));
  for (std::size_t at = 0; at < text.size();) {
    const auto written = ::write(pipe, text.data() + at, text.size() - at);
    if (written < 0 && errno != EINTR) ::_exit(1);
    if (written > 0) at += static_cast<std::size_t>(written);
  }
  ::_exit(0);
}

std::string read_all(int pipe) {
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const auto size = ::read(pipe, part.data(), part.size());
    if (size == 0 || (size < 0 && errno != EINTR)) return text;
    if (size > 0) text.append(part.data(), static_cast<std::size_t>(size));
  }
}

}  // namespace

SchemaReport check_schema_apart(const std::filesystem::path& file) {
  std::fflush(nullptr);  // what is in the buffers must not be printed twice
  std::array<int, 2> ends{};
  TAPER_VALIDATE(::pipe(ends.data()) == 0,
                 "no pipe for checking " << path_text(file) << " (" << std::strerror(errno) << ")");
  const pid_t child = ::fork();
  TAPER_VALIDATE(child >= 0, "no process for checking " << path_text(file) << " ("
                                                        << std::strerror(errno) << ")");
  if (child == 0) {
    ::close(ends[0]);
    check_and_tell(file, ends[1]);
  }
  ::close(ends[1]);
  const std::string text = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return of_lines(text);
  SchemaReport report;
  report.faults.push_back(path_text(file) + ": it cannot be read: HDF5 failed on it with " +
                          (WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "an error") +
                          " (the structure of the file is damaged)");
  return report;
}

}  // namespace taper
