// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

struct CUevent_st;
struct CUstream_st;
struct ncclComm;

namespace taper {
class Group;
class Progress;
}  // namespace taper

namespace taper::nccl {

// That of the library, "2.28.9".
std::string version();

// Why the ranks of `world` cannot use NCCL, the same text on all: the first rank that cannot load
// it, or two with different versions; empty if they can. Collective over `world`.
std::string problem(const Group& world);

// The ranks of a group as NCCL knows them, each with a GPU of its own. Operations on it are queued
// on a stream of that GPU (Transport.hpp). The watchdog is told of errors that come later, and of
// operations that do not end; it aborts them before the process exits.
class Communicator {
 public:
  // Of all ranks of `world`. Throws Error if NCCL fails. Collective over `world`.
  static std::shared_ptr<Communicator> create(const Group& world);

  // The `ranks` ranks that give the same color, whose keys are their numbers among them; null for
  // kNone. Throws Error if NCCL fails, or makes another one. Collective over this one.
  static constexpr int kNone = -1;
  std::shared_ptr<const Communicator> split(int color, int key, int ranks) const;

  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();

  ncclComm* get() const { return comm_; }
  // An operation was queued on the stream.
  void mark(CUstream_st* stream) const;

 private:
  Communicator(ncclComm* comm, Progress* progress);
  // What the watchdog is to report; empty: nothing.
  std::string problem(double hang_seconds) const;

  ncclComm* comm_;
  Progress* progress_;
  mutable std::mutex mutex_;
  CUevent_st* last_ = nullptr;           // after the operation that was queued last
  mutable std::int64_t queued_ns_ = -1;  // when; steady clock
};

}  // namespace taper::nccl
