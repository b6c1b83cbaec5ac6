// SPDX-License-Identifier: Apache-2.0
#include "device/Devices.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/Error.hpp"
#include "base/Text.hpp"

namespace taper {
namespace {

constexpr std::array kKnownCapabilities{80, 86, 89, 90};

std::string visibility_text() {
  const char* value = std::getenv("CUDA_VISIBLE_DEVICES");
  return value == nullptr ? "CUDA_VISIBLE_DEVICES is not set"
                          : "CUDA_VISIBLE_DEVICES is '" + std::string(value) + "'";
}

}  // namespace

int choose_device(const VisibleDevices& visible, int rank_on_host, int built_for) {
  TAPER_VALIDATE(!visible.list.empty(),
                 "this program computes on GPUs, and this rank sees none ("
                     << (visible.problem.empty() ? "" : visible.problem + "; ") << visibility_text()
                     << "): ask the batch system for GPUs (Slurm: --gpus-per-node), see what "
                        "nvidia-smi says on this host, or use a build for CPUs");
  const auto count = static_cast<int>(visible.list.size());
  const int chosen = rank_on_host % count;
  const Device& device = visible.list[static_cast<std::size_t>(chosen)];
  // Programs for 9.0 have instructions that no other architecture has, also no later one.
  const bool is_for_one = built_for == 90;
  TAPER_VALIDATE(is_for_one ? device.capability == built_for : device.capability >= built_for,
                 to_string(device)
                     << " has compute capability " << capability_text(device.capability)
                     << " (this program was built for " << capability_text(built_for)
                     << (is_for_one ? " alone" : "")
                     << "); build Kokkos and Taper for this GPU (doc/gpu.md#build)");
  TAPER_VALIDATE(std::ranges::count(kKnownCapabilities, device.capability) > 0,
                 to_string(device)
                     << " has compute capability " << capability_text(device.capability)
                     << ", and it is not known how its tensor cores add (it is for "
                        "8.0, 8.6, 8.9 and 9.0); use one of these");
  TAPER_VALIDATE(!device.prohibited, to_string(device)
                                         << " takes no programs (its compute mode is "
                                            "'prohibited'); use another GPU, or have the mode set "
                                            "to 'default' (nvidia-smi -c 0)");
  return chosen;
}

std::string problem_of(const std::vector<DeviceUse>& ranks) {
  std::map<std::pair<std::string, std::string>, std::size_t> first_of;  // (host, bus)
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const DeviceUse &mine = ranks[r], &one = ranks.front();
    if (mine.device.capability != one.device.capability)
      return "rank 0 uses " + to_string(one.device) + " of compute capability " +
             capability_text(one.device.capability) + ", rank " + std::to_string(r) + " " +
             to_string(mine.device) + " of " + capability_text(mine.device.capability) +
             ", whose tensor cores need not add alike: results would depend on the rank; use GPUs "
             "of one kind";
    const auto [found, is_new] = first_of.try_emplace({mine.host, mine.device.bus}, r);
    if (is_new) continue;
    const DeviceUse& other = ranks[found->second];
    const std::string who = "ranks " + std::to_string(found->second) + " and " + std::to_string(r) +
                            " would both use " + to_string(mine.device) + " of " + mine.host;
    if (mine.device.exclusive)
      return who +
             ", which takes one program at a time (its compute mode is 'exclusive'); start "
             "as many ranks as GPUs on a host, or have the mode set to 'default' "
             "(nvidia-smi -c 0)";
    if (mine.seen != other.seen)
      return who + ", because they see different GPUs (" + join(other.seen, ", ") + "; and " +
             join(mine.seen, ", ") +
             "); let the batch system show all GPUs of a host to each of its ranks, or another "
             "one to each (Slurm: --gpus-per-node, --gpus-per-task)";
  }
  return "";
}

std::string capability_text(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

std::string to_string(const Device& device) {
  return device.name + " (" + device.bus + ")";
}

#if !defined(TAPER_CUDA)
std::int64_t device_memory_taken() {
  return 0;
}
#endif

}  // namespace taper
