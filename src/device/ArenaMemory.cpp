// SPDX-License-Identifier: Apache-2.0
#include "device/ArenaMemory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <memory>

#include "base/Error.hpp"
#include "base/Text.hpp"

namespace taper {
namespace {

// Of the mapping that the memory lies in.
std::size_t mapped_bytes(std::int64_t bytes) {
  return static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1) + ArenaMemory::kLargePage);
}

}  // namespace

const bool ArenaMemory::kHasStaging = false;

ArenaMemory::ArenaMemory(std::int64_t bytes, MemoryKind kind) : bytes_(bytes), kind_(kind) {
  std::size_t room = mapped_bytes(bytes);
  mapping_ = ::mmap(nullptr, room, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TAPER_VALIDATE(mapping_ != MAP_FAILED,
                 "no memory for " << format_bytes(static_cast<double>(bytes))
                                  << " on this rank (see the memory plan above); use more ranks, a "
                                  << "smaller batch or activation checkpointing");
  void* aligned = mapping_;
  base_ = static_cast<char*>(std::align(static_cast<std::size_t>(kLargePage),
                                        static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)),
                                        aligned, room));
  // Only a wish: small pages give the same results more slowly.
  if (bytes >= kLargePage) ::madvise(base_, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
}

ArenaMemory::~ArenaMemory() {
  ::munmap(mapping_, mapped_bytes(bytes_));
}

void ArenaMemory::populate() {
#ifdef MADV_POPULATE_WRITE
  ::madvise(base_, static_cast<std::size_t>(bytes_), MADV_POPULATE_WRITE);
#endif
}

}  // namespace taper
