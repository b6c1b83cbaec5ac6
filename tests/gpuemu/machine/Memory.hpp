// SPDX-License-Identifier: Apache-2.0
//
// What every access to memory is checked for: that the address is allocated, that what is read was
// written, and that no other thread or launch touches the same bytes unordered.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpuemu/machine/Machine.hpp"

namespace taper::gpuemu {

// Which checks are on; all unless the environment says otherwise (runtime/Settings.hpp).
struct Checks {
  bool written = true, races = true;
};

// A thread at a moment of a launch. `time` is that of its warp, which advances where lanes or warps
// wait for one another.
struct Moment {
  std::uint32_t launch = 0;  // number of an operation of the runtime; 0: none
  std::uint32_t time = 0;
  std::uint64_t thread : 63 = 0;  // block * 1024 + warp * 32 + lane
  std::uint64_t is_atomic : 1 = 0;
};

// The last accesses to two bytes: threads that use the two bytes of one half word differently are
// not told apart.
struct Touches {
  Moment write, read, other_read;
};

// Zero pages that take memory when they are touched.
struct Unmap {
  std::size_t bytes = 0;
  void operator()(void* p) const;
};
template <class T>
using Pages = std::unique_ptr<T[], Unmap>;

// Bytes with a mark for each that was written, and with their last accesses. The tables are zero
// pages until touched.
class CheckedBytes {
 public:
  CheckedBytes() = default;
  explicit CheckedBytes(std::size_t bytes);

  std::size_t size() const { return size_; }
  void mark_written(std::size_t offset, std::size_t bytes, bool is_written = true);
  bool is_written(std::size_t offset, std::size_t bytes) const;
  void copy_marks(std::size_t offset, const CheckedBytes& from, std::size_t from_offset,
                  std::size_t bytes);
  Touches* touches(std::size_t offset) { return touches_.get() + offset / 2; }
  void forget_touches(std::size_t offset, std::size_t bytes);

 private:
  std::size_t size_ = 0;
  Pages<std::uint8_t> marks_;
  Pages<Touches> touches_;
};

struct Allocation {
  // kPeer: memory of another process's device, about whose accesses nothing is known.
  enum class Kind : std::uint8_t { kDevice, kPinned, kVariable, kPeer };
  std::uintptr_t start = 0;
  std::size_t bytes = 0;
  Kind kind = Kind::kDevice;
  CheckedBytes checked;

  bool contains(std::uintptr_t address, std::size_t n) const {
    return address - start < bytes && n <= bytes - (address - start);
  }
};

// All memory that a device can reach, apart from shared and local memory of running threads.
class DeviceMemory {
 public:
  Allocation& add(void* start, std::size_t bytes, Allocation::Kind kind);
  void remove(void* start);
  // nullptr if no allocation has all n bytes.
  Allocation* find(std::uintptr_t address, std::size_t n);

 private:
  std::map<std::uintptr_t, Allocation> allocations_;
  Allocation* last_ = nullptr;
};

}  // namespace taper::gpuemu
