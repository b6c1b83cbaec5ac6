// SPDX-License-Identifier: Apache-2.0
#include "gpuemu/runtime/DevicePool.hpp"

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "gpuemu/runtime/Runtime.hpp"

namespace taper::gpuemu {
namespace {

constexpr std::size_t kPage = 4096;
const DevicePool* guarded_pool = nullptr;

void on_fault(int signal, siginfo_t* info, void*) {
  if (guarded_pool != nullptr && guarded_pool->contains(info->si_addr)) {
    static const char text[] =
        "gpuemu: fault: the host touches memory of the device; it was called from\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text, sizeof text - 1);
    void* frames[32];
    backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
    _exit(kFaultCode);
  }
  ::signal(signal, SIG_DFL);  // the same instruction again ends the process
}

}  // namespace

DevicePool::DevicePool(std::size_t bytes, bool is_guarded)
    : bytes_(bytes), is_guarded_(is_guarded) {
  file_ = memfd_create("gpuemu", MFD_CLOEXEC);
  void* p = file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes)) != 0
                ? MAP_FAILED
                : mmap(nullptr, bytes, is_guarded ? PROT_NONE : PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (p == MAP_FAILED)
    throw Fault("no address space for the memory of the device (GPUEMU_MEMORY_MB)");
  base_ = static_cast<char*>(p);
  if (!is_guarded) return;
  guarded_pool = this;
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

void* DevicePool::allocate(std::size_t bytes) {
  std::size_t at = 0;
  for (const auto& [start, size] : pieces_) {  // the first gap that is large enough
    if (start - at >= bytes) break;
    at = start + size;
  }
  if (at + bytes > bytes_) return nullptr;
  pieces_[at] = bytes;
  used_ = std::max(used_, at + bytes);
  return base_ + at;
}

void DevicePool::free(void* p) {
  pieces_.erase(static_cast<std::size_t>(static_cast<char*>(p) - base_));
}

bool DevicePool::contains(const void* p) const {
  return p >= base_ && p < base_ + bytes_;
}

DevicePool::Handle DevicePool::handle_of(const void* p) const {
  const auto start = static_cast<std::size_t>(static_cast<const char*>(p) - base_);
  const auto piece = pieces_.find(start);
  if (piece == pieces_.end()) return {0, -1, 0, 0};
  return {getpid(), file_, start, piece->second};
}

// Mappings begin at pages, pieces at 256 bytes.
void* DevicePool::map(const Handle& handle) {
  const std::string name =
      "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
  const int file = open(name.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  const std::size_t before = handle.start % kPage;
  void* p = mmap(nullptr, before + handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                 static_cast<off_t>(handle.start - before));
  close(file);
  return p == MAP_FAILED ? nullptr : static_cast<char*>(p) + before;
}

void DevicePool::unmap(void* p, const Handle& handle) {
  const std::size_t before = handle.start % kPage;
  munmap(static_cast<char*>(p) - before, before + handle.bytes);
}

void DevicePool::protect(bool is_closed) {
  if (!is_guarded_ || used_ == 0) return;
  const std::size_t bytes = (used_ + kPage - 1) / kPage * kPage;
  mprotect(base_, bytes, is_closed ? PROT_NONE : PROT_READ | PROT_WRITE);
}

}  // namespace taper::gpuemu
