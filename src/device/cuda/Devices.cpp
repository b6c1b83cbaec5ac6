// SPDX-License-Identifier: Apache-2.0
#include "device/Devices.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>

#include "base/CudaCall.hpp"

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

// Throws Error if the device does not answer.
Device describe(int number) {
  Device device;
  cudaDeviceProp properties{};
  require_cuda(cudaGetDeviceProperties(&properties, number), "cudaGetDeviceProperties");
  device.name = properties.name;
  device.capability = 10 * properties.major + properties.minor;
  std::array<char, 32> bus{};
  require_cuda(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), number),
               "cudaDeviceGetPCIBusId");
  device.bus = bus.data();
  int mode = cudaComputeModeDefault;
  require_cuda(cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, number),
               "cudaDeviceGetAttribute");
  device.prohibited = mode == cudaComputeModeProhibited;
  device.exclusive = mode == cudaComputeModeExclusive || mode == cudaComputeModeExclusiveProcess;
  return device;
}

struct Memory {
  std::size_t free = 0, total = 0;
};
Memory memory() {
  Memory memory;
  require_cuda(cudaMemGetInfo(&memory.free, &memory.total), "cudaMemGetInfo");
  return memory;
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
  const auto [free, total] = memory();
  return static_cast<std::int64_t>(total - free);
}

// The driver takes memory later, too: for graphs, and for stacks of kernels. How much is not
// known, and little.
std::int64_t device_memory_left() {
  constexpr std::size_t kPartForDriver = 256;
  const auto [free, total] = memory();
  return static_cast<std::int64_t>(
      std::max<std::size_t>(1, free - std::min(free, total / kPartForDriver)));
}

int built_for() {
  return TAPER_CUDA_ARCHITECTURE;
}

}  // namespace taper
