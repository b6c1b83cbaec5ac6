// SPDX-License-Identifier: Apache-2.0
#include "device/ArenaMemory.hpp"

#include <sys/mman.h>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "device/detail/Mapping.hpp"

namespace taper {

const bool ArenaMemory::kHasStaging = false;

ArenaMemory::ArenaMemory(std::int64_t bytes, MemoryKind kind) : bytes_(bytes), kind_(kind) {
  mapping_ = detail::map_room(bytes, PROT_READ | PROT_WRITE);
  TAPER_VALIDATE(mapping_ != MAP_FAILED,
                 "no memory for " << format_bytes(static_cast<double>(bytes))
                                  << " on this rank (see the memory plan above); use more ranks, a "
                                  << "smaller batch or activation checkpointing");
  base_ = detail::aligned_in(mapping_, bytes);
  detail::wish_large_pages(base_, bytes);
}

ArenaMemory::~ArenaMemory() {
  ::munmap(mapping_, detail::mapped_bytes(bytes_));
}

void ArenaMemory::populate() {
  detail::populate(base_, bytes_);
}

}  // namespace taper
