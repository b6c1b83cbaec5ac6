// SPDX-License-Identifier: Apache-2.0
//
// The memory of the device. While no operation runs, the host cannot touch it: code that does so by
// mistake ends with a report, as it would on a machine with a GPU. Other processes may map it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace taper::gpuemu {

class DevicePool {
 public:
  // is_guarded: whether the host is kept out.
  DevicePool(std::size_t bytes, bool is_guarded);

  // nullptr if there is no piece of that size left.
  void* allocate(std::size_t bytes);
  void free(void* p);
  bool contains(const void* p) const;

  // A piece as another process finds it (cudaIpcMemHandle_t).
  struct Handle {
    int process, file;
    std::size_t start, bytes;  // 0 bytes: there is none
  };
  Handle handle_of(const void* p) const;
  // nullptr if the piece cannot be mapped.
  static void* map(const Handle& handle);
  static void unmap(void* p, const Handle& handle);

  // The memory is open as long as one of these lives.
  class Opened {
   public:
    explicit Opened(DevicePool& pool) : pool_(pool) {
      if (pool_.opened_++ == 0) pool_.protect(false);
    }
    ~Opened() {
      if (--pool_.opened_ == 0) pool_.protect(true);
    }

   private:
    DevicePool& pool_;
  };

 private:
  void protect(bool is_closed);

  int file_ = -1;
  char* base_ = nullptr;
  std::size_t bytes_, used_ = 0;  // used: up to the end of the last piece ever given out
  bool is_guarded_;
  int opened_ = 0;
  std::map<std::size_t, std::size_t> pieces_;  // start -> size of those in use
};

}  // namespace taper::gpuemu
