// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace taper {

// Zeroed memory of the host that several processes map: one makes it, the others are told its name.
// It has no name in a file system, so that it is gone with the last process that has it, however
// that ends, and no limit of one bounds it. Large pages where the system offers them for this kind
// of memory.
class SharedMemory {
 public:
  // What other processes of the host map it by, as long as the process that made it has it.
  struct Name {
    std::int64_t process = 0, descriptor = -1, bytes = 0;
  };

  // Makes it. Throws Error if the process may not have so much. Whether the host has it shows when
  // it is touched, as with all memory.
  explicit SharedMemory(std::int64_t bytes);
  // Maps that of another process. Throws Error if this process may not, cannot see the other, or
  // finds something else there.
  explicit SharedMemory(const Name& made);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  Name name() const;
  char* base() const { return base_; }
  std::int64_t bytes() const { return bytes_; }
  // See Arena::populate().
  void populate();

 private:
  SharedMemory(int descriptor, std::int64_t bytes) : descriptor_(descriptor), bytes_(bytes) {}
  void map();

  int descriptor_ = -1;
  std::int64_t bytes_ = 0;
  void* mapping_ = nullptr;  // with room to align base_ in it
  char* base_ = nullptr;
};

}  // namespace taper
