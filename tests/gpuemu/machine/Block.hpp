// SPDX-License-Identifier: Apache-2.0
//
// The threads of one block: shared memory, barriers, and what its warps know of one another's past.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gpuemu/machine/Machine.hpp"
#include "gpuemu/machine/Memory.hpp"

namespace taper::gpuemu {

class Warp;

struct Dim {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

// What lay in memory of the host when an operation was queued that may read it. What the host has
// written since is a fault; what operations from number `pending` on have written is not.
struct HostMemory {
  std::map<std::uintptr_t, std::vector<std::uint8_t>> pieces;  // by address
  std::uint32_t pending = 0;

  bool overlaps(const void* p, std::size_t n) const;
  // Whether the host has written one of these bytes of the allocation since. Not of what is
  // unknown.
  bool is_changed(Allocation& allocation, const void* p, std::size_t n) const;
};

// One launch of a kernel.
struct Launch {
  const Program* program = nullptr;
  const Routine* kernel = nullptr;
  Dim grid, block;
  std::uint32_t dynamic_shared = 0;
  std::vector<std::uint8_t> parameters;
  bool is_cooperative = false;  // whether all blocks are there at the same time
  std::uint32_t number = 1;     // among the operations of the runtime
  std::shared_ptr<const HostMemory> host;
};

// What a lane knows of the others of its warp: events up to those times have happened before.
class LaneClocks {
 public:
  void reset();
  std::uint32_t now() const { return now_; }
  bool knows(int lane, int other, std::uint32_t time) const { return known_[lane][other] >= time; }
  // All lanes of the mask learn what any of them knows, and time advances.
  void meet(Mask lanes);

 private:
  std::uint32_t now_ = 1;
  std::array<std::array<std::uint32_t, kLanes>, kLanes> known_{};
};

// Copies into shared memory that were begun and not yet waited for (cp.async).
class AsyncCopies {
 public:
  struct Copy {
    std::uint32_t to;
    const std::uint8_t* from;
    std::uint16_t bytes, valid;
    std::uint8_t lane;
    std::uint32_t group;
  };
  void reset();
  void begin(const Copy& copy) { pending_.push_back(copy); }
  std::uint32_t open_group(int lane) const { return committed_[lane]; }
  void commit(Mask lanes);
  // Delivers what the lanes have committed but for the newest `keep` groups.
  void wait(Warp& warp, Mask lanes, std::uint32_t keep, bool with_uncommitted);

 private:
  std::deque<Copy> pending_;
  std::array<std::uint32_t, kLanes> committed_{};
};

// What products of warpgroups that were begun and not yet waited for read (wgmma).
class AsyncProducts {
 public:
  void reset() {
    pending_.clear();
    committed_ = 0;
  }
  void reads(std::uint32_t offset, int lane, const std::uint8_t* bytes);  // 16 of them
  void commit() { ++committed_; }
  // Until all but the newest `keep` groups are done. Throws Fault if what they read has changed.
  void wait(Warp& warp, std::uint32_t keep);

 private:
  struct Read {
    std::uint32_t offset;
    int lane;
    std::uint32_t group;
    std::array<std::uint8_t, 16> bytes;
  };
  std::deque<Read> pending_;
  std::uint32_t committed_ = 0;
};

// An mbarrier: arrivals and bytes of bulk copies that its phase still waits for.
struct MemoryBarrier {
  struct BulkCopy {
    std::uint32_t to, bytes;
    const std::uint8_t* from;
  };
  std::uint32_t count = 0, pending = 0;
  std::int64_t bytes = 0;
  std::uint32_t phase = 0;
  std::vector<BulkCopy> copies;
  std::vector<std::uint32_t> clock;  // of warps that arrived
};

struct Machine;

class Block {
 public:
  Block(Machine& machine, const Launch& launch);
  ~Block();
  // Runs the block with this index from start to end.
  void run(Dim index);
  // The same in parts, beside other blocks. step() lets each warp run for a while; true: something
  // was done other than polling.
  void start(Dim index);
  bool step();
  bool is_done() const { return is_done_; }

  Machine& machine;
  const Launch& launch;
  Dim index;
  std::uint64_t number = 0;  // in the grid
  std::vector<std::uint8_t> shared;
  CheckedBytes shared_checks;
  std::map<std::uint32_t, MemoryBarrier> memory_barriers;

  bool is_shared(std::uint64_t offset, std::uint64_t n) const;
  // Warp `warp` has learned of everything that `other` did up to this time.
  bool knows(int warp, int other, std::uint32_t time) const {
    return known_[static_cast<std::size_t>(warp)][static_cast<std::size_t>(other)] >= time;
  }
  std::vector<std::uint32_t> release(Warp& warp);
  void acquire(Warp& warp, const std::vector<std::uint32_t>& clock);
  // Notes an access of a thread. Throws Fault if an earlier one to the same bytes is not ordered
  // before it.
  void touch(Warp& warp, int lane, CheckedBytes& bytes, std::size_t offset, int n, bool is_write,
             bool is_atomic);
  // Throws Fault if a thread wrote bytes of shared memory and has not released them to asynchronous
  // operations since.
  void require_release(const Warp& warp, int lane, std::size_t offset, int n);

 private:
  bool release_barriers();
  void check_order(Warp& warp, int lane, const Moment& before, const char* kind) const;

  std::vector<Warp> warps_;
  std::vector<std::vector<std::uint32_t>> known_;
  bool is_done_ = false;
  int idle_steps_ = 0;
};

struct Statistics {
  std::uint64_t launches = 0, instructions = 0, bytes_read = 0, bytes_written = 0, products = 0;
};

// What all launches share.
struct Machine {
  DeviceMemory memory;
  Checks checks;
  std::mt19937 random{1};
  int architecture = 90;  // whose tensor cores are modeled: 80 or 90
  Statistics statistics;
  // Whether operation `before` of the runtime is ordered before operation `after`.
  bool (*is_ordered)(std::uint32_t before, std::uint32_t after) = nullptr;

  void run(const Launch& launch);

 private:
  void run_together(const Launch& launch, const std::vector<Dim>& order);
};

}  // namespace taper::gpuemu
