// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace taper {

// Where memory of a plan lies. On the host both are the same.
enum class MemoryKind {
  kModel,    // where kernels work: memory of the GPU in builds for one
  kStaging,  // reached by kernels and by the host
};

// One piece of zeroed memory: of the host, on large pages if the system offers them, or of the GPU
// (cuda/ArenaMemory.cpp).
class ArenaMemory {
 public:
  // Where the piece begins on the host, so that all of it can be on large pages.
  static constexpr std::int64_t kLargePage = std::int64_t{2} << 20;

  // Throws Error if there is not so much left.
  explicit ArenaMemory(std::int64_t bytes, MemoryKind kind = MemoryKind::kModel);
  ArenaMemory(const ArenaMemory&) = delete;
  ArenaMemory& operator=(const ArenaMemory&) = delete;
  ~ArenaMemory();

  char* base() const { return base_; }
  std::int64_t bytes() const { return bytes_; }
  // See Arena::populate().
  void populate();

  // Whether staging memory is memory of its own.
  static const bool kHasStaging;

 private:
  void* mapping_ = nullptr;  // on the host, with room to align base_ in it
  char* base_ = nullptr;
  std::int64_t bytes_ = 0;
  MemoryKind kind_ = MemoryKind::kModel;
};

}  // namespace taper
