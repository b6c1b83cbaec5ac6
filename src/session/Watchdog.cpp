// SPDX-License-Identifier: Apache-2.0
#include "session/Watchdog.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "session/detail/ExitTimer.hpp"

namespace taper {
namespace {

constexpr const char* kReport = "hang-rank-";  // and number, and ".txt"
constexpr double kWritingSeconds = 5.0;        // that writing reports may take

}  // namespace

std::vector<std::string> WatchdogOptions::problems() const {
  std::vector<std::string> found;
  if (!(hang_seconds > 0.0)) found.push_back("hang_seconds must be positive");
  if (!(grace_seconds >= 0.0)) found.push_back("grace_seconds must not be negative");
  if (directory.empty()) found.push_back("directory must not be empty ('.' is the current one)");
  return found;
}

Watchdog::Watchdog(Progress& progress, WatchdogOptions options)
    : progress_(progress), options_(std::move(options)) {
  require_no_problems(options_.problems(), "watchdog");
  thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_signal_.notify_all();
  thread_.join();
}

void Watchdog::watch() {
  const std::chrono::duration<double> period(std::clamp(options_.hang_seconds / 10, 0.01, 5.0));
  std::unique_lock lock(mutex_);
  while (!stop_signal_.wait_for(lock, period, [this] { return stop_; })) {
    const auto view = progress_.read();
    if (view.inside_collective && view.seconds_since_change > options_.hang_seconds) {
      std::ostringstream why;
      why << "no progress for more than " << options_.hang_seconds << " s";
      give_up(why.str(), view);
    }
    if (const auto problem = progress_.watched_problem(options_.hang_seconds); !problem.empty())
      give_up(problem, view);
  }
}

void Watchdog::give_up(const std::string& why, const Progress::View& view) const {
  std::ostringstream report;
  report << why << ": " << to_string(view)
         << " (another rank is late, stuck or gone; compare the reports of all ranks)";
  // What hangs may be the file system of these files, or of the one that stderr goes to.
  const detail::ExitTimer at_last(options_.grace_seconds + kWritingSeconds,
                                  static_cast<int>(ExitCode::kFailure));
  log_line(LogLevel::kError, report.str());
  {
    std::error_code ignored;  // the report is on stderr, too
    std::filesystem::create_directories(options_.directory, ignored);
    std::ofstream file(options_.directory + "/" + kReport + std::to_string(log_rank()) + ".txt");
    file << report.str() << '\n';
  }
  if (options_.on_report) options_.on_report(report.str());
  std::this_thread::sleep_for(std::chrono::duration<double>(options_.grace_seconds));
  progress_.abandon_watched();
  // No destructors and no MPI_Finalize: the main thread is inside MPI.
  ::_exit(static_cast<int>(ExitCode::kFailure));
}

void remove_hang_reports(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code ignored;  // a report that stays does no harm
  std::vector<fs::path> reports;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string(), stem = entry.path().stem().string();
    const std::size_t begin = std::string_view(kReport).size();
    if (name.starts_with(kReport) && name == stem + ".txt" && stem.size() > begin &&
        stem.find_first_not_of("0123456789", begin) == std::string::npos)
      reports.push_back(entry.path());
  }
  for (const fs::path& report : reports) fs::remove(report, ignored);
}

}  // namespace taper
