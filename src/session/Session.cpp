// SPDX-License-Identifier: Apache-2.0
#include "session/Session.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/Error.hpp"
#include "base/Fingerprint.hpp"
#include "base/Log.hpp"
#include "comm/Collectives.hpp"
#include "comm/GatherValues.hpp"
#include "device/Devices.hpp"
#include "kernels/Instructions.hpp"
#include "session/detail/ExitTimer.hpp"

namespace taper {
namespace {

HostMap gather_allowed() {
  return gather_host_map(Group::world(MPI_COMM_WORLD, {.wait = WaitMode::kYield}), find_place());
}

// Throws Error on all ranks unless all have read the same degrees: groups are made in an order that
// follows from them. Collective over the world.
void require_same(const std::vector<int>& tp_degrees) {
  const std::span<const int> degrees(tp_degrees);
  const auto mine = static_cast<std::int64_t>(Fingerprint().add_all(degrees).value());
  std::vector<std::int64_t> ends{mine, ~mine};  // the largest, and of the least
  all_reduce_max(Group::world(MPI_COMM_WORLD, {.wait = WaitMode::kYield}), ends);
  TAPER_VALIDATE(ends[0] == ~ends[1],
                 "ranks have read different tensor-parallel degrees (the run file, or an option, "
                 "is not the same on all hosts); give all ranks the same");
}

// Of all ranks, in rank order: "avx512", or "avx2 to amx (of rank 0: avx2)".
std::string names_of(const std::vector<int>& sets) {
  const auto name = [](int set) { return std::string(kInstructionSetNames[set]); };
  const auto [least, most] = std::ranges::minmax(sets);
  if (least == most) return name(least);
  return name(least) + " to " + name(most) + " (of rank 0: " + name(sets.front()) + ")";
}

// Each text of the ranks once, with the first rank that says it.
std::vector<std::string> different(const std::vector<std::string>& texts) {
  std::vector<std::string> list;
  std::set<std::string> known{""};
  for (std::size_t r = 0; r < texts.size(); ++r)
    if (known.insert(texts[r]).second)
      list.push_back(texts[r] + " (rank " + std::to_string(r) + ")");
  return list;
}

// The GPU of a rank, in builds for GPUs. Throws Error if it cannot use one, and on all ranks if
// they cannot use theirs together. Collective over the world.
int device_of([[maybe_unused]] const HostMap& hosts, [[maybe_unused]] int rank) {
#if defined(TAPER_CUDA)
  const VisibleDevices visible = visible_devices();
  const int chosen = choose_device(visible, hosts.rank_on_host(rank), built_for());
  DeviceUse mine{hosts.ranks[rank].host, visible.list[chosen], {}};
  for (const Device& device : visible.list) mine.seen.push_back(device.bus);
  std::vector<DeviceUse> all;
  {
    const detail::ExitTimer timer(kHangSeconds, static_cast<int>(ExitCode::kFailure), [] {
      TAPER_ERROR("another rank has not found its GPU for " << kHangSeconds
                                                            << " s: does nvidia-smi hang there?");
    });
    all = all_gather_values(Group::world(MPI_COMM_WORLD, {.wait = WaitMode::kYield}), mine);
  }
  const std::string problem = problem_of(all);
  TAPER_VALIDATE(problem.empty(), problem);
  return chosen;
#else
  return 0;
#endif
}

}  // namespace

Session::Session(int& argc, char**& argv)
    : mpi_(argc, argv),
      allowed_(gather_allowed()),
      threads_(choose_threads(allowed_, mpi_.rank(), process_environment)),
      runtime_(argc, argv, threads_.threads(), device_of(allowed_, mpi_.rank())) {
  mpi_.watch(progress_);
}

void Session::report_processors() const {
  const HostInstructions mine = host_instructions();
  std::vector<int> threads(static_cast<std::size_t>(mpi_.ranks())), sets = threads;
  all_gather(ranks_->world(), threads, std::array{host_threads()});
  all_gather(ranks_->world(), sets, std::array{static_cast<int>(mine.widest)});
  const std::vector<std::string> refused = all_gather_string(ranks_->world(), mine.refused);
  TAPER_INFO(to_string(threads_, threads)
             << (kOnHost ? "; instructions: " : "; instructions of the host: ") << names_of(sets));
  if (mpi_.rank() != 0) return;
  for (const auto& text : thread_warnings(allowed_, threads)) TAPER_WARN(text);
  for (const auto& text : different(refused))
    TAPER_WARN("instructions that are not used: " << text);
}

Ranks& Session::start(const std::vector<int>& tp_degrees, double hang_seconds,
                      const std::string& directory,
                      std::function<void(const std::string&)> on_hang) {
  WatchdogOptions options;
  options.hang_seconds = hang_seconds;
  options.directory = directory;
  options.on_report = std::move(on_hang);
  watchdog_ = std::make_unique<Watchdog>(progress_, options);
  require_same(tp_degrees);
  ranks_ = std::make_unique<Ranks>(MPI_COMM_WORLD, mpi_.ranks(), tp_degrees, progress_);
  if (mpi_.ranks() > 1) TAPER_INFO(to_string(ranks_->hosts));
  check_host_map(ranks_->hosts);
#if defined(TAPER_CUDA)
  if (const std::string how = ranks_->connect_devices(); !how.empty()) TAPER_INFO(how);
#endif
  report_processors();
  return *ranks_;
}

}  // namespace taper
