// SPDX-License-Identifier: Apache-2.0
//
// The GPUs of a host: which one a rank uses, and why it cannot use one.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace taper {

// One GPU as the CUDA runtime describes it.
struct Device {
  std::string name;
  std::string bus;     // address on its host: two ranks with the same one share a GPU
  int capability = 0;  // compute capability, 90 for 9.0
  bool prohibited = false, exclusive = false;  // compute mode

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.name, self.bus, self.capability, self.prohibited, self.exclusive);
  }
};

// The devices that a process sees.
struct VisibleDevices {
  std::vector<Device> list;
  std::string problem;  // why there are none, in the words of the runtime
};

// The number, among those that a rank sees, of the device that it uses: that of its own number on
// the host, counted over again if there are more ranks than devices. Where a batch system shows
// each rank its own, that is the only one. `built_for`: the compute capability of the program.
// Throws Error if there is none or it cannot be used, also if the sums of its tensor cores are not
// known (kernels/canonical/tensor_core.hpp).
int choose_device(const VisibleDevices& visible, int rank_on_host, int built_for);

// The device that a rank of a job uses.
struct DeviceUse {
  std::string host;
  Device device;
  std::vector<std::string> seen;  // buses of all that the rank sees

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.host, self.device, self.seen);
  }
};

// Why ranks, in their order, cannot use these devices in one job; empty if they can. Ranks may
// share a device, but not one that takes a single program, nor because they see different ones of
// their host; and all must compute alike.
std::string problem_of(const std::vector<DeviceUse>& ranks);

// Bytes of the memory of the device in use that are taken, by any program; 0 in builds for CPUs.
std::int64_t device_memory_taken();

#if defined(TAPER_CUDA)
// Asks the CUDA runtime. Throws Error if a device does not answer.
VisibleDevices visible_devices();
// The one that this process uses; without a name if it can use none.
Device device_in_use();
// Bytes of its memory that nobody has taken, less a little that the driver takes later; at least 1.
std::int64_t device_memory_left();
// The compute capability that this program was built for.
int built_for();
#endif

// "NVIDIA H100 80GB HBM3 (0000:17:00.0)".
std::string to_string(const Device& device);
// "9.0".
std::string capability_text(int capability);

}  // namespace taper
