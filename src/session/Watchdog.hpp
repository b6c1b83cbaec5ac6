// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/Progress.hpp"

namespace taper {

// The default of --hang-seconds and Run/Hang Seconds. Healthy ranks wait for each other, too, while
// one of them reads from a slow disk, or ends a long response: rarely for minutes.
constexpr double kHangSeconds = 600.0;

struct WatchdogOptions {
  // Without change inside one collective; must exceed the slowest healthy wait.
  double hang_seconds = kHangSeconds;
  double grace_seconds = 5.0;   // between report and exit, so that other stuck ranks report as well
  std::string directory = ".";  // of hang-rank-N.txt
  // Called with the report, before the exit.
  std::function<void(const std::string&)> on_report = {};

  std::vector<std::string> problems() const;
};

// A thread that ends the process when it is stuck in a collective, or when what Progress watches
// has a problem: it writes phase, step and collective to stderr and to <directory>/hang-rank-N.txt,
// abandons what is watched, and leaves with ExitCode::kFailure, also if that does not return, upon
// which the launcher ends the other ranks. Computing outside of collectives may take any time; the
// ranks that wait for it report instead.
class Watchdog {
 public:
  // `progress` must outlive the watchdog. Throws Error on bad options.
  Watchdog(Progress& progress, WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch();
  [[noreturn]] void give_up(const std::string& why, const Progress::View& view) const;

  Progress& progress_;
  WatchdogOptions options_;
  std::mutex mutex_;
  std::condition_variable stop_signal_;
  bool stop_ = false;
  std::thread thread_;
};

// Removes the reports hang-rank-N.txt of earlier jobs from a directory, which need not exist. One
// rank only.
void remove_hang_reports(const std::string& directory);

}  // namespace taper
