// SPDX-License-Identifier: Apache-2.0
//
// 32 threads that run one routine. Lanes with the lowest program counter go first, so that branches
// meet again; lanes that need others (barriers, shuffles, votes) wait at the instruction until
// those come there.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "gpuemu/machine/Block.hpp"
#include "gpuemu/machine/Machine.hpp"

namespace taper::gpuemu {

enum class Access : std::uint8_t { kRead, kWrite, kAtomic };

class Warp {
 public:
  enum class State : std::uint8_t { kReady, kAtBarrier, kWaiting, kDone };

  void start(Block& block, int index, int threads, const Routine& routine);
  // Runs until all lanes have ended, or wait for other warps, or `budget` instructions are done.
  void run(int budget);

  State state = State::kDone;
  int barrier = 0;  // number and threads of the one that is waited for; 0 threads: all
  std::uint32_t barrier_threads = 0;

  // For handlers of instructions: the lanes that take part, and their registers.
  Mask active = 0;
  template <class T>
  T* lanes(std::uint32_t offset) {
    return reinterpret_cast<T*>(registers_ + offset);
  }
  Mask& predicate(std::uint32_t number) { return predicates_[number]; }
  std::uint64_t value(const Operand& o, int lane) {
    if (o.kind == Operand::Kind::kPredicate) {
      return (predicates_[o.offset] >> lane & 1u) ^ (o.is_negated ? 1u : 0u);
    }
    return o.bytes == 8 ? lanes<std::uint64_t>(o.offset)[lane]
                        : lanes<std::uint32_t>(o.offset)[lane];
  }
  void set(const Operand& o, int lane, std::uint64_t v) {
    switch (o.kind) {
      case Operand::Kind::kPredicate: {
        const Mask bit = Mask{1} << lane;
        predicates_[o.offset] = (predicates_[o.offset] & ~bit) | (v & 1 ? bit : 0);
        break;
      }
      case Operand::Kind::kRegister:
        if (o.bytes == 8) {
          lanes<std::uint64_t>(o.offset)[lane] = v;
        } else {
          lanes<std::uint32_t>(o.offset)[lane] = static_cast<std::uint32_t>(v);
        }
        break;
      default:
        break;  // a sink
    }
  }
  // Host address of the operand's n bytes in the instruction's space. Throws Fault for an access
  // that is out of bounds, misaligned, to bytes not written, or unordered with another thread's.
  // value: the bytes that a write will put there, which is no race if they are there already.
  std::uint8_t* address(const Instruction& i, const Operand& o, int lane, int n, Access access,
                        const void* value = nullptr);
  std::uint8_t* shared(std::uint64_t offset, int lane, int n, Access access,
                       const void* value = nullptr);
  // A generic address.
  std::uint8_t* generic(std::uint64_t address, int lane, int n, Access access,
                        const void* value = nullptr);
  std::uint64_t generic_address(Space space, std::uint64_t address, int lane);
  std::uint64_t address_in(Space space, std::uint64_t generic, int lane);
  bool is_in(Space space, std::uint64_t generic, int lane);

  Block& block() { return *block_; }
  int index() const { return index_; }
  Mask live() const { return frames_.back().live; }
  // Ends the turn of this warp after the instruction, so that what it polls for can happen.
  void yield() { has_yielded_ = true; }
  // Throws Fault with the kernel, block, thread and instruction.
  [[noreturn]] void fail(const std::string& what, int lane = -1) const;

  Mask carry = 0;  // of additions, per lane
  LaneClocks clocks;
  AsyncCopies copies;
  AsyncProducts products;
  // What the active lanes have written so far may be read by asynchronous operations.
  void release_to_async();
  // The time up to which a lane has done so.
  std::uint32_t released(int lane) const { return released_[lane]; }

 private:
  struct Frame {
    const Routine* routine = nullptr;
    std::vector<std::uint8_t> registers;
    std::vector<Mask> predicates;
    std::vector<std::uint8_t> lane_parameters;
    std::uint32_t pc[kLanes] = {};
    Mask live = 0, parked = 0;
    const Instruction* call = nullptr;  // of the caller
    Mask callers = 0;
  };

  void enter(const Routine& routine, Mask lanes);
  void fill_constants(Frame& frame);
  std::uint32_t special(Special which, int lane) const;
  // Runs lanes of the innermost frame that are at one place until they part or come to others.
  void run_together(int& budget);
  std::uint32_t select(Frame& frame);
  void call(const Instruction& i);
  void leave_call();
  // Lanes that must be at the instruction for it to happen.
  Mask needed(const Instruction& i, Mask here);
  std::uint8_t* lane_parameter(Frame& frame, std::int64_t offset, int lane);
  void require_unchanged(Allocation& allocation, const std::uint8_t* memory, int n, int lane);
  void use(CheckedBytes& bytes, std::size_t offset, int lane, int n, Access access,
           const void* value, const std::uint8_t* memory);

  Block* block_ = nullptr;
  int index_ = 0;
  std::vector<Frame> frames_;
  std::uint8_t* registers_ = nullptr;
  Mask* predicates_ = nullptr;
  std::vector<std::uint8_t> local_;
  std::size_t local_stride_ = 0;
  const Instruction* current_ = nullptr;
  bool has_yielded_ = false;
  std::array<std::uint32_t, kLanes> released_{};
};

}  // namespace taper::gpuemu
