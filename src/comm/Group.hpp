// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/Wait.hpp"

namespace taper {

class Progress;
namespace nccl {
class Communicator;
}
namespace peers {
class Windows;
}

// What every group of a run shares. Carried by the groups themselves, so there is no global state.
struct GroupOptions {
  WaitMode wait = WaitMode::kAuto;
  Progress* progress = nullptr;              // told of every collective; must outlive the groups
  std::int64_t max_message_bytes = 1 << 30;  // larger data travel in pieces (MPI counts are int)
};

// Place of a rank in a list, -1 if it is not in there.
int index_of(const std::vector<int>& ranks, int rank);

// An ordered list of ranks that communicate, passed as an argument to whatever communicates. The
// list numbers them within the world that they belong to: the job, or a block of its ranks. A
// member's index in the list, rank(), is its shard index. A group of one is a *null group*: its
// collectives are copies and need no MPI.
class Group {
 public:
  // The null group of this process alone.
  static Group self(int world_rank = 0);
  // Adopts `comm` (without owning it) as the group of all ranks 0..n-1; it then returns errors
  // instead of aborting. Collective over `comm` if options.wait is kAuto.
  static Group world(MPI_Comm comm, const GroupOptions& options = {});
  // The ranks [first, first + size) of `parent`, here 0..size-1, with a communicator of their own.
  // Every rank of parent calls it, each with the block that it is in. options.wait must be
  // resolved. Throws Error on ranks that are not in their block, and on all ranks of a block that
  // others are in too or that parent does not have. Collective over `parent`, which creates the
  // communicators of all blocks together.
  static Group block(MPI_Comm parent, int first, int size, const GroupOptions& options);
  // The ranks of `world` that can share memory with this one, according to MPI, in their order.
  // Collective over `world`.
  static Group of_node(const Group& world);
  // Owns `comm`, whose rank i is world_ranks[i]. options.wait must be resolved.
  static Group owning(MPI_Comm comm, std::vector<int> world_ranks, const GroupOptions& options);

  Group(Group&& other) noexcept;
  Group& operator=(Group&& other) noexcept;
  ~Group();

  int rank() const { return rank_; }  // index of this process in world_ranks()
  int size() const { return static_cast<int>(world_ranks_.size()); }
  bool is_null() const { return size() == 1; }

  const std::vector<int>& world_ranks() const { return world_ranks_; }
  int world_rank() const { return world_ranks_[static_cast<std::size_t>(rank_)]; }
  // Position of a world rank in the list, -1 if it is no member.
  int index_of(int world_rank) const { return taper::index_of(world_ranks_, world_rank); }

  // For libraries that want a raw communicator (HDF5); MPI_COMM_SELF for a null group.
  MPI_Comm comm() const { return comm_; }
  const GroupOptions& options() const { return options_; }
  WaitMode wait() const { return options_.wait; }
  Progress* progress() const { return options_.progress; }
  std::int64_t max_message_bytes() const { return options_.max_message_bytes; }

#if defined(TAPER_CUDA)
  // Whether its ranks have a GPU each and NCCL connects them: else what kernels compute is
  // exchanged through the host.
  bool connects_devices() const {
    return devices_ != nullptr;
  }
  // Null if it does not.
  const nccl::Communicator* devices() const {
    return devices_.get();
  }
  void connect(std::shared_ptr<const nccl::Communicator> devices) {
    devices_ = std::move(devices);
  }
  // Of ranks whose GPUs reach one another's memory, for sums; null if there are none.
  const peers::Windows* windows() const {
    return windows_.get();
  }
  void connect(std::shared_ptr<const peers::Windows> windows) {
    windows_ = std::move(windows);
  }
#else
  bool connects_devices() const {
    return false;
  }
#endif

  // The running number of the next collective: equal on all ranks of a group that is used
  // correctly.
  std::uint64_t next_number() const {
    return ++number_;
  }
  std::uint64_t number() const {
    return number_;
  }

 private:
  Group(std::vector<int> world_ranks, int rank, MPI_Comm comm, bool owned,
        const GroupOptions& options);
  void free();

  std::vector<int> world_ranks_;
  int rank_ = 0;
  MPI_Comm comm_ = MPI_COMM_SELF;
  bool owned_ = false;
  GroupOptions options_;
#if defined(TAPER_CUDA)
  std::shared_ptr<const nccl::Communicator> devices_;
  std::shared_ptr<const peers::Windows> windows_;
#endif
  mutable std::uint64_t number_ = 0;  // bookkeeping, not part of the value
};

}  // namespace taper
