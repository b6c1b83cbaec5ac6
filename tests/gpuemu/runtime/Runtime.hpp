// SPDX-License-Identifier: Apache-2.0
//
// The state behind the stand-in for libcudart: one device, what is registered, and what is queued.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gpuemu/machine/Block.hpp"
#include "gpuemu/runtime/DevicePool.hpp"
#include "gpuemu/runtime/Queue.hpp"

namespace taper::gpuemu {

// Read once from the environment:
//   GPUEMU_SEED=N           order of blocks, warps and operations (default 1)
//   GPUEMU_ARCH=80|90       whose tensor cores are modeled, and what the device says it is (90)
//   GPUEMU_CHECKS=LIST      written,races,streams,host or none (default: all)
//   GPUEMU_MEMORY_MB=N      memory of the device (default 8192)
//   GPUEMU_DEVICES=N        devices that the process sees (default 1)
//   GPUEMU_STATISTICS=FILE  a JSON line per kernel at the end, appended
struct Settings {
  std::uint32_t seed = 1;
  int architecture = 90;
  Checks checks;
  bool checks_streams = true, checks_host = true;
  std::size_t memory_bytes = std::size_t{8192} << 20;
  int devices = 1;
  std::string statistics;
};
Settings settings_of_environment();
// Whether GPUEMU_PEER_FAULT is RANK:KIND for this rank of the job.
bool has_peer_fault(const std::string& kind);

// One fat binary of the program, decoded when it is first used.
struct Binary {
  std::vector<std::string> texts;
  std::unique_ptr<Program> program;
};
// The PTX texts in what __cudaRegisterFatBinary gets.
std::vector<std::string> ptx_of(const void* fat_binary);

struct Kernel {
  Binary* binary = nullptr;
  std::string name;
};

struct KernelStatistics {
  std::uint64_t launches = 0, instructions = 0, bytes_read = 0, bytes_written = 0, products = 0;
};

class Runtime {
 public:
  static Runtime& get();

  // Guards everything here; taken by each function of the API.
  std::recursive_mutex mutex;
  Settings settings;
  Machine machine;
  Queue queue;
  DevicePool pool;
  std::map<const void*, Kernel> kernels;
  std::map<const void*, Kernel> variables;
  std::map<std::string, KernelStatistics> statistics;
  std::map<void*, DevicePool::Handle> peer_pieces;  // of other processes that are mapped here
  cudaError_t last_error = cudaSuccess;
  int device = 0;
  std::uint32_t running = 0;         // number of an operation of Recorded.hpp
  bool forbids_allocations = false;  // between cudaProfilerStart and cudaProfilerStop
  std::size_t allocated_bytes = 0, peak_bytes = 0;

  Program& program_of(Binary& binary);
  std::uint8_t* variable(const void* symbol, std::size_t& bytes);
  const Routine& kernel_of(const void* function, const Program** program);

  void* allocate(std::size_t bytes, Allocation::Kind kind);
  bool release(void* p);
  // Counts calls that must not happen in a loop that is being watched.
  void note_allocation(const char* what);

  cudaError_t launch(const void* function, Dim grid, Dim block, void** arguments,
                     std::size_t shared, Stream* stream, bool is_cooperative = false);
  cudaError_t copy(void* to, const void* from, std::size_t bytes, Stream* stream, const char* name);
  cudaError_t fill(void* to, int value, std::size_t bytes, Stream* stream);
  // What a copy does when it runs, as operation `number`.
  void run_copy(void* to, const void* from, std::size_t bytes, std::uint32_t number);

  // An operation of the default stream while others that wait for it are captured breaks these.
  bool breaks_capture(Stream* stream) {
    return stream == &queue.legacy() && queue.break_captures();
  }

  cudaError_t fail(cudaError_t error) {
    last_error = error;
    return error;
  }

 private:
  Runtime();
  ~Runtime();
  void run(const Launch& launch);
  std::shared_ptr<const HostMemory> read_host_memory(const std::vector<std::uint8_t>& parameters);
  std::shared_ptr<const HostMemory> keep(HostMemory&& memory);
  // Whether an operation that is pending may read it.
  bool is_awaited(const void* p, std::size_t bytes);
  void use_bytes(void* at, std::size_t bytes, bool is_write, std::uint32_t number,
                 const char* what);

  std::vector<std::weak_ptr<const HostMemory>> awaited_;  // of pending operations
};

// Of a block, on request (cudaFuncSetAttribute).
constexpr std::size_t kMostSharedBytes = 227 << 10;
// Few, so that grids of persistent blocks stay small.
constexpr int kMultiprocessors = 4;
// Of a cooperative launch.
constexpr std::uint64_t kMostBlocksTogether = 2 * kMultiprocessors;

// Writes the report and ends the process with kFaultCode: no test may pass over it.
constexpr int kFaultCode = 86;
[[noreturn]] void report_fault(const std::string& what);

// Each function of the API: locks, and turns Faults into the end of the process.
template <class F>
auto guarded(F&& f) {
  Runtime& r = Runtime::get();
  const std::scoped_lock lock(r.mutex);
  try {
    return f(r);
  } catch (const std::exception& e) {
    report_fault(e.what());
  }
}

}  // namespace taper::gpuemu
