// SPDX-License-Identifier: Apache-2.0
//
// The GPUs of a host: which one a rank uses, and why it cannot use one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace taper {

// One GPU as the CUDA runtime describes it.
struct Device {
  std::string name;
  std::string bus;     // address on its host: two ranks with the same one share a GPU
  int capability = 0;  // compute capability, 90 for 9.0
  bool prohibited = false, exclusive = false;  // compute mode
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
int choose_device(const VisibleDevices& visible, int rank_on_host, int ranks_on_host,
                  int built_for);

// Bytes of the memory of the device in use that are taken, by any program; 0 in builds for CPUs.
std::int64_t device_memory_taken();

#if defined(TAPER_CUDA)
// Asks the CUDA runtime.
VisibleDevices visible_devices();
// Name and bus of the one that this process uses; empty if it can use none.
std::string device_in_use();
// Bytes of its memory that nobody has taken.
std::int64_t device_memory_left();
// The compute capability that this program was built for.
int built_for();
#endif

// "NVIDIA H100 80GB HBM3 (0000:17:00.0)".
std::string to_string(const Device& device);

}  // namespace taper
