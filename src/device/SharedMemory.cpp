// SPDX-License-Identifier: Apache-2.0
#include "device/SharedMemory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "device/detail/Mapping.hpp"

namespace taper {
namespace {

constexpr std::int64_t kLargePage = ArenaMemory::kLargePage;

// Large pages, where the system can. Most systems give files in memory none by themselves
// (shmem_enabled is never), but put together what they are asked to (Linux 6.1 or later): quickly
// while a page holds nothing yet; once all of it has been touched its contents are copied.
void collapse_pages(char* base, std::int64_t bytes) {
#ifdef MADV_COLLAPSE
  constexpr int kCollapse = MADV_COLLAPSE;
#else
  constexpr int kCollapse = 25;  // the C library is older than the kernel
#endif
  for (std::int64_t at = 0; at + kLargePage <= bytes; at += kLargePage) {
    base[at] = 0;
    if (::madvise(base + at, static_cast<std::size_t>(kLargePage), kCollapse) != 0) return;
  }
}

std::string path_of(const SharedMemory::Name& made) {
  return "/proc/" + std::to_string(made.process) + "/fd/" + std::to_string(made.descriptor);
}

}  // namespace

SharedMemory::SharedMemory(std::int64_t bytes)
    : SharedMemory(::memfd_create("taper", MFD_CLOEXEC), bytes) {
  TAPER_VALIDATE(descriptor_ >= 0, "ranks of a host cannot share memory (memfd_create: "
                                       << std::strerror(errno) << "); set TAPER_SHARE_WEIGHTS=no");
  TAPER_VALIDATE(
      ::ftruncate(descriptor_, static_cast<off_t>(detail::used_bytes(bytes))) == 0,
      "no memory for " << format_bytes(static_cast<double>(bytes))
                       << " that ranks of a host share (ftruncate: " << std::strerror(errno)
                       << "); raise ulimit -f, or set TAPER_SHARE_WEIGHTS=no");
  map();
  collapse_pages(base_, bytes_);
}

SharedMemory::SharedMemory(const Name& made)
    : SharedMemory(::open(path_of(made).c_str(), O_RDWR | O_CLOEXEC), made.bytes) {
  TAPER_VALIDATE(descriptor_ >= 0, "memory that ranks of a host share cannot be mapped ("
                                       << path_of(made) << ": " << std::strerror(errno)
                                       << "); set TAPER_SHARE_WEIGHTS=no");
  struct stat found {};
  TAPER_VALIDATE(::fstat(descriptor_, &found) == 0 &&
                     found.st_size == static_cast<off_t>(detail::used_bytes(made.bytes)),
                 "memory that ranks of a host share cannot be mapped ("
                     << path_of(made) << " is something else: ranks see different processes); set "
                     << "TAPER_SHARE_WEIGHTS=no");
  map();
}

void SharedMemory::map() {
  // Addresses alone, in which a place that large pages fit is chosen.
  void* const addresses = detail::map_room(bytes_, PROT_NONE);
  const auto require = [&](bool is_mapped) {
    TAPER_VALIDATE(is_mapped, "no addresses for "
                                  << format_bytes(static_cast<double>(bytes_))
                                  << " that ranks of a host share (mmap: " << std::strerror(errno)
                                  << "); raise ulimit -v, or use more ranks");
  };
  require(addresses != MAP_FAILED);
  mapping_ = addresses;
  base_ = detail::aligned_in(addresses, bytes_);
  require(::mmap(base_, detail::used_bytes(bytes_), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                 descriptor_, 0) != MAP_FAILED);
  detail::wish_large_pages(base_, bytes_);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_),
      mapping_(std::exchange(other.mapping_, nullptr)),
      base_(other.base_) {}

SharedMemory::~SharedMemory() {
  if (mapping_ != nullptr) ::munmap(mapping_, detail::mapped_bytes(bytes_));
  if (descriptor_ >= 0) ::close(descriptor_);
}

SharedMemory::Name SharedMemory::name() const {
  return {::getpid(), descriptor_, bytes_};
}

void SharedMemory::populate() {
  detail::populate(base_, bytes_);
}

}  // namespace taper
