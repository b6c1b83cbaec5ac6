// SPDX-License-Identifier: Apache-2.0
#include "gpuemu/machine/Memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace taper::gpuemu {

namespace {

template <class T>
Pages<T> zero_pages(std::size_t count) {
  const std::size_t bytes = count * sizeof(T);
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw Fault("no address space for what is known of memory");
  return Pages<T>(static_cast<T*>(p), Unmap{bytes});
}

}  // namespace

CheckedBytes::CheckedBytes(std::size_t bytes)
    : size_(bytes),
      marks_(zero_pages<std::uint8_t>(bytes / 8 + 2)),
      touches_(zero_pages<Touches>(bytes / 2 + 1)) {}

void Unmap::operator()(void* p) const {
  munmap(p, bytes);
}

// A mark is a bit; an access of up to 8 bytes lies in two bytes of marks at most.
void CheckedBytes::mark_written(std::size_t offset, std::size_t bytes, bool is_written) {
  if (bytes > 64 && offset % 8 == 0) {
    const std::size_t whole = bytes / 8;
    std::memset(marks_.get() + offset / 8, is_written ? 0xff : 0, whole);
    offset += whole * 8;
    bytes -= whole * 8;
  }
  while (bytes > 0) {
    const std::size_t n = std::min<std::size_t>(bytes, 8 - offset % 8);
    const auto bits = static_cast<std::uint8_t>(((1u << n) - 1) << offset % 8);
    std::uint8_t& mark = marks_[offset / 8];
    mark = static_cast<std::uint8_t>(is_written ? mark | bits : mark & ~bits);
    offset += n;
    bytes -= n;
  }
}

bool CheckedBytes::is_written(std::size_t offset, std::size_t bytes) const {
  while (bytes > 0) {
    const std::size_t n = std::min<std::size_t>(bytes, 8 - offset % 8);
    const auto bits = static_cast<std::uint8_t>(((1u << n) - 1) << offset % 8);
    if ((marks_[offset / 8] & bits) != bits) return false;
    offset += n;
    bytes -= n;
  }
  return true;
}

void CheckedBytes::copy_marks(std::size_t offset, const CheckedBytes& from, std::size_t from_offset,
                              std::size_t bytes) {
  if (offset % 8 == 0 && from_offset % 8 == 0 && bytes % 8 == 0) {
    std::memmove(marks_.get() + offset / 8, from.marks_.get() + from_offset / 8, bytes / 8);
    return;
  }
  for (std::size_t k = 0; k < bytes; ++k)
    mark_written(offset + k, 1, from.is_written(from_offset + k, 1));
}

void CheckedBytes::forget_touches(std::size_t offset, std::size_t bytes) {
  std::memset(static_cast<void*>(touches(offset)), 0, (bytes + 1) / 2 * sizeof(Touches));
}

Allocation& DeviceMemory::add(void* start, std::size_t bytes, Allocation::Kind kind) {
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  Allocation& a = allocations_[address];
  a = {address, bytes, kind, CheckedBytes(bytes)};
  return a;
}

void DeviceMemory::remove(void* start) {
  allocations_.erase(reinterpret_cast<std::uintptr_t>(start));
  last_ = nullptr;
}

Allocation* DeviceMemory::find(std::uintptr_t address, std::size_t n) {
  if (last_ != nullptr && last_->contains(address, n)) return last_;
  auto next = allocations_.upper_bound(address);
  if (next == allocations_.begin()) return nullptr;
  Allocation& a = std::prev(next)->second;
  if (!a.contains(address, n)) return nullptr;
  last_ = &a;
  return &a;
}

}  // namespace taper::gpuemu
