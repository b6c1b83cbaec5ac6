// SPDX-License-Identifier: Apache-2.0
#include "Session.hpp"

#include <mpi.h>

#include "base/Log.hpp"

namespace taper {

Session::Session(int& argc, char**& argv) : mpi_(argc, argv), runtime_(argc, argv) {
  mpi_.watch(progress_);
}

Ranks& Session::start(const std::vector<int>& tp_degrees, double hang_seconds,
                      const std::string& directory,
                      std::function<void(const std::string&)> on_hang) {
  ranks_ = std::make_unique<Ranks>(MPI_COMM_WORLD, mpi_.ranks(), tp_degrees, progress_);
  placement_ = gather_placement(ranks_->world(), find_place());
  if (mpi_.ranks() > 1) TAPER_INFO(to_string(placement_));
  check_placement(placement_, SharedCores::kRefuse);
  ranks_->ranks_on_host = placement_.ranks_on_host(mpi_.rank());
  WatchdogOptions options;
  options.hang_seconds = hang_seconds;
  options.directory = directory;
  options.on_report = std::move(on_hang);
  watchdog_ = std::make_unique<Watchdog>(progress_, options);
  return *ranks_;
}

}  // namespace taper
