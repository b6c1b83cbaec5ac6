// SPDX-License-Identifier: Apache-2.0
//
// What pieces of host memory that begin on a large page have in common.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "device/ArenaMemory.hpp"

namespace taper::detail {

// Of a piece: nothing of no bytes can be mapped.
inline std::size_t used_bytes(std::int64_t bytes) {
  return static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
}
// Of the mapping that the piece lies in, with room to align it.
inline std::size_t mapped_bytes(std::int64_t bytes) {
  return used_bytes(bytes) + static_cast<std::size_t>(ArenaMemory::kLargePage);
}

// A mapping for a piece of so many bytes, of no file; MAP_FAILED if there is none.
inline void* map_room(std::int64_t bytes, int protection) {
  return ::mmap(nullptr, mapped_bytes(bytes), protection,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
// Where the piece begins in it.
inline char* aligned_in(void* mapping, std::int64_t bytes) {
  std::size_t room = mapped_bytes(bytes);
  return static_cast<char*>(std::align(static_cast<std::size_t>(ArenaMemory::kLargePage),
                                       used_bytes(bytes), mapping, room));
}

// Asks for large pages. Only a wish: small pages give the same results more slowly.
inline void wish_large_pages(char* base, std::int64_t bytes) {
  if (bytes >= ArenaMemory::kLargePage)
    ::madvise(base, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
}

// See Arena::populate().
inline void populate([[maybe_unused]] char* base, [[maybe_unused]] std::int64_t bytes) {
#ifdef MADV_POPULATE_WRITE
  ::madvise(base, static_cast<std::size_t>(bytes), MADV_POPULATE_WRITE);
#endif
}

}  // namespace taper::detail
