// SPDX-License-Identifier: Apache-2.0
#include "device/Devices.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>

namespace taper {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// What the runtime says about an error, with the versions where it is about them.
std::string problem_text(cudaError_t code) {
  std::string text = cudaGetErrorString(code);
  int driver = 0, runtime = 0;
  if (code == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess &&
      cudaRuntimeGetVersion(&runtime) == cudaSuccess)
    text += driver == 0 ? "; there is no driver"
                        : "; the driver is for CUDA " + version_text(driver) +
                              ", this program for CUDA " + version_text(runtime);
  return text;
}

Device describe(int number) {
  Device device;
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, number) == cudaSuccess) {
    device.name = properties.name;
    device.capability = 10 * properties.major + properties.minor;
  }
  std::array<char, 32> bus{};
  if (cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), number) == cudaSuccess)
    device.bus = bus.data();
  int mode = cudaComputeModeDefault;
  if (cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, number) == cudaSuccess) {
    device.prohibited = mode == cudaComputeModeProhibited;
    device.exclusive = mode == cudaComputeModeExclusive || mode == cudaComputeModeExclusiveProcess;
  }
  return device;
}

}  // namespace

VisibleDevices visible_devices() {
  VisibleDevices visible;
  int count = 0;
  if (const cudaError_t code = cudaGetDeviceCount(&count); code != cudaSuccess)
    visible.problem = problem_text(code);
  else
    for (int i = 0; i < count; ++i) visible.list.push_back(describe(i));
  return visible;
}

Device device_in_use() {
  int number = 0;
  return cudaGetDevice(&number) == cudaSuccess ? describe(number) : Device{};
}

std::int64_t device_memory_taken() {
  std::size_t free = 0, total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess ? static_cast<std::int64_t>(total - free) : 0;
}

// The driver takes memory later, too: for graphs, and for stacks of kernels. How much is not
// known, and little.
std::int64_t device_memory_left() {
  constexpr std::size_t kPartForDriver = 256;
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return 0;
  return static_cast<std::int64_t>(free - std::min(free, total / kPartForDriver));
}

int built_for() {
  return TAPER_CUDA_ARCHITECTURE;
}

}  // namespace taper
