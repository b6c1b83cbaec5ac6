// SPDX-License-Identifier: Apache-2.0
//
// Memory of GPUs of a host that the GPUs of other ranks write into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

struct CUstream_st;

namespace taper {
class Group;
}

namespace taper::peers {

// A window of each rank of a group, for sums by one kernel (kernels/peer_sum.hpp), on GPUs that
// reach one another's memory.
class Windows {
 public:
  static constexpr int kMostRanks = 8;
  static constexpr int kParts = 3;
  // Of a part. Larger sums are better shared out over the ranks.
  static constexpr std::int64_t kPartFloats = std::int64_t{1} << 19;
  static constexpr std::size_t kStateBytes = 256;

  // The group's ranks are on one host, at most kMostRanks. Null on all of them if one cannot reach
  // another one's memory, or if TAPER_PEER_SUMS is "no"; then `problem` says why, on all alike.
  // Collective over `group`.
  static std::shared_ptr<const Windows> connect(const Group& group, std::string& problem);

  Windows(const Windows&) = delete;
  Windows& operator=(const Windows&) = delete;
  ~Windows();

  // Where this rank's kernels find the window of a rank of the group.
  float* window(int rank) const { return windows_[static_cast<std::size_t>(rank)]; }
  // kStateBytes for what kernels remember from sum to sum, zero at the start.
  void* state() const { return state_; }

 private:
  Windows() = default;
  void free_own();

  int rank_ = 0;
  std::vector<float*> windows_;
  void* state_ = nullptr;
};

// Calls launch(), which queues a kernel on the stream that exchanges `count` values over the
// windows of the group: the watchdog and audit builds know of it as of any other collective,
// `name`. Collective over `group`.
void as_collective(const Group& group, const char* name, std::int64_t count, CUstream_st* stream,
                   const std::function<void()>& launch);

}  // namespace taper::peers
