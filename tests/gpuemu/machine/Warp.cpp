// SPDX-License-Identifier: Apache-2.0
#include "gpuemu/machine/Warp.hpp"

#include <algorithm>
#include <bit>

namespace taper::gpuemu {
namespace {

template <class F>
void for_lanes(Mask lanes, F&& f) {
  for (; lanes != 0; lanes &= lanes - 1) f(std::countr_zero(lanes));
}

}  // namespace

void Warp::start(Block& block, int index, int threads, const Routine& routine) {
  block_ = &block;
  index_ = index;
  state = State::kReady;
  clocks.reset();
  copies.reset();
  products.reset();
  released_.fill(0);
  local_stride_ = static_cast<std::size_t>((routine.local_bytes + 63) / 64 * 64);
  local_.assign(local_stride_ * kLanes, 0xff);
  // Constants of the kernel's own frame stay filled from block to block.
  const bool is_again = frames_.size() == 1 && frames_[0].routine == &routine;
  if (!is_again) frames_.clear();
  const Mask lanes = threads >= kLanes ? kAllLanes : (Mask{1} << threads) - 1;
  if (!is_again) {
    enter(routine, lanes);
    return;
  }
  Frame& f = frames_[0];
  std::fill(std::begin(f.pc), std::end(f.pc), 0u);
  f.live = lanes;
  f.parked = 0;
  fill_constants(f);
}

void Warp::enter(const Routine& routine, Mask lanes) {
  if (frames_.size() >= 24) fail("calls are nested too deeply");
  if (!frames_.empty() && routine.local_bytes > 0) fail("local memory in a called function");
  frames_.emplace_back();
  Frame& f = frames_.back();
  f.routine = &routine;
  f.registers.assign(routine.frame_bytes + 64, 0xff);
  f.predicates.assign(static_cast<std::size_t>(routine.predicates) + 1, 0);
  f.lane_parameters.assign(static_cast<std::size_t>(routine.lane_parameter_bytes + 16) * kLanes,
                           0xff);
  f.live = lanes;
  fill_constants(f);
}

void Warp::fill_constants(Frame& f) {
  registers_ = f.registers.data();
  predicates_ = f.predicates.data();
  for (const Routine::Constant& c : f.routine->constants) {
    for (int lane = 0; lane < kLanes; ++lane) {
      if (c.bytes == 8) {
        lanes<std::uint64_t>(c.offset)[lane] = c.value;
      } else {
        lanes<std::uint32_t>(c.offset)[lane] = static_cast<std::uint32_t>(c.value);
      }
    }
  }
  for (const auto& [offset, which] : f.routine->specials) {
    for (int lane = 0; lane < kLanes; ++lane) {
      if (which == Special::kClock) {
        lanes<std::uint64_t>(offset)[lane] = 0;
      } else {
        lanes<std::uint32_t>(offset)[lane] = special(which, lane);
      }
    }
  }
}

std::uint32_t Warp::special(Special which, int lane) const {
  const Launch& l = block_->launch;
  const auto t = static_cast<std::uint32_t>(index_ * kLanes + lane);
  const Mask below = (Mask{1} << lane) - 1;
  switch (which) {
    case Special::kThreadX:
      return t % l.block.x;
    case Special::kThreadY:
      return t / l.block.x % l.block.y;
    case Special::kThreadZ:
      return t / l.block.x / l.block.y;
    case Special::kBlockSizeX:
      return l.block.x;
    case Special::kBlockSizeY:
      return l.block.y;
    case Special::kBlockSizeZ:
      return l.block.z;
    case Special::kBlockX:
      return block_->index.x;
    case Special::kBlockY:
      return block_->index.y;
    case Special::kBlockZ:
      return block_->index.z;
    case Special::kGridX:
      return l.grid.x;
    case Special::kGridY:
      return l.grid.y;
    case Special::kGridZ:
      return l.grid.z;
    case Special::kLane:
      return static_cast<std::uint32_t>(lane);
    case Special::kWarp:
      return static_cast<std::uint32_t>(index_);
    case Special::kWarps:
      return static_cast<std::uint32_t>((l.block.count() + kLanes - 1) / kLanes);
    case Special::kMaskEqual:
      return Mask{1} << lane;
    case Special::kMaskBelow:
      return below;
    case Special::kMaskUpTo:
      return below | Mask{1} << lane;
    case Special::kMaskFrom:
      return ~below;
    case Special::kMaskAbove:
      return ~below & ~(Mask{1} << lane);
    case Special::kDynamicShared:
      return l.dynamic_shared;
    case Special::kProcessors:
      return 132;
    default:
      return 0;
  }
}

void Warp::run(int budget) {
  state = State::kReady;
  while (state == State::kReady && budget > 0) {
    Frame& f = frames_.back();
    if (f.live != 0) {
      registers_ = f.registers.data();
      predicates_ = f.predicates.data();
      run_together(budget);
    } else if (frames_.size() == 1) {
      state = State::kDone;
      copies.wait(*this, kAllLanes, 0, true);
    } else {
      leave_call();
    }
  }
}

// The place to go on at: the lowest one at which a lane is that waits for no other.
std::uint32_t Warp::select(Frame& f) {
  std::uint32_t lowest = ~0u;
  for_lanes(f.live & ~f.parked, [&](int lane) { lowest = std::min(lowest, f.pc[lane]); });
  if (lowest != ~0u) return lowest;
  // All wait: lanes that have ended meanwhile are no longer needed.
  for (Mask rest = f.parked & f.live; rest != 0;) {
    const std::uint32_t at = f.pc[std::countr_zero(rest)];
    Mask here = 0;
    for_lanes(rest, [&](int lane) { here |= f.pc[lane] == at ? Mask{1} << lane : 0; });
    if ((needed(f.routine->code[at], here) & ~here) == 0) return at;
    rest &= ~here;
  }
  current_ = &f.routine->code[f.pc[std::countr_zero(f.live)]];
  fail("lanes of a warp wait for one another at different instructions");
}

Mask Warp::needed(const Instruction& i, Mask here) {
  if (i.flow == Flow::kBarrier) return live();
  if (i.members < 0) {
    if (live() != kAllLanes)
      fail("an instruction of whole warps in a warp whose lanes have ended in part");
    return kAllLanes;
  }
  Mask members = 0;
  for_lanes(here, [&](int lane) {
    members |= static_cast<Mask>(value(i.operands[static_cast<std::size_t>(i.members)], lane));
  });
  if ((members & here) != here) fail("a lane is not in the mask of lanes that it gives");
  return members & live();
}

void Warp::run_together(int& budget) {
  Frame& f = frames_.back();
  std::uint32_t at = select(f);
  Mask here = 0;
  std::uint32_t next = ~0u;  // the first place ahead at which others are
  for_lanes(f.live, [&](int lane) {
    if (f.pc[lane] == at) here |= Mask{1} << lane;
    if (f.pc[lane] > at) next = std::min(next, f.pc[lane]);
  });
  f.parked &= ~here;
  const auto go = [&f](Mask lanes, std::uint32_t to) {
    for_lanes(lanes, [&](int lane) { f.pc[lane] = to; });
  };
  const Instruction* code = f.routine->code.data();
  Statistics& statistics = block_->machine.statistics;
  while (true) {
    const Instruction& i = code[at];
    current_ = &i;
    active = here;
    if (i.guard >= 0) {
      const Mask p = predicates_[i.guard];
      active &= i.is_guard_negated ? ~p : p;
    }
    ++statistics.instructions;
    --budget;
    switch (i.flow) {
      case Flow::kNext:
        if (active != 0) i.handler(*this, i);
        ++at;
        break;
      case Flow::kBranch: {
        const auto target = static_cast<std::uint32_t>(i.target);
        if (active == 0) {
          ++at;
          break;
        }
        if (active != here || here != f.live) {
          go(here & ~active, at + 1);
          go(active, target);
          return;
        }
        at = target;
        break;
      }
      case Flow::kTable:
        go(here & ~active, at + 1);
        for_lanes(active, [&](int lane) {
          f.pc[lane] = static_cast<std::uint32_t>(i.table.at(value(i.operands[0], lane)));
        });
        return;
      case Flow::kReturn:
        if (frames_.size() > 1) {
          f.live &= ~active;
          go(here & ~active, at + 1);
          return;
        }
        [[fallthrough]];
      case Flow::kExit:
        for (Frame& each : frames_) each.live &= ~active;
        go(here & ~active, at + 1);
        return;
      case Flow::kBarrier:
      case Flow::kMeet: {
        if (active == 0) {
          ++at;
          break;
        }
        if ((needed(i, active) & ~active) != 0) {
          go(here & ~active, at + 1);
          go(active, at);
          f.parked |= active;
          return;
        }
        if (i.handler != nullptr) i.handler(*this, i);
        ++at;
        if (i.flow == Flow::kBarrier && state == State::kAtBarrier) {
          go(here, at);
          return;
        }
        break;
      }
      case Flow::kCall:
        go(here, at + 1);
        if (active != 0) call(i);
        return;
    }
    if (at >= next || budget <= 0 || has_yielded_) {
      go(here, at);
      if (has_yielded_) {
        has_yielded_ = false;
        state = State::kWaiting;
      }
      return;
    }
  }
}

std::uint8_t* Warp::lane_parameter(Frame& f, std::int64_t offset, int lane) {
  const std::int64_t in_bank = offset - f.routine->bank_bytes;
  const std::int64_t stride = f.routine->lane_parameter_bytes + 16;
  return f.lane_parameters.data() + lane * stride + in_bank;
}

void Warp::call(const Instruction& i) {
  const std::string& name = i.operands[0].name;
  const Routine* callee = block_->launch.program->find(name);
  if (callee == nullptr) {
    if (name == "vprintf") return;
    fail(name == "__assertfail" ? "a device assertion failed"
                                : "call of " + name + ", which has no code");
  }
  const Mask callers = active;
  enter(*callee, callers);
  Frame& f = frames_.back();
  Frame& from = frames_[frames_.size() - 2];
  f.call = &i;
  f.callers = callers;
  for (std::size_t k = 0; k < callee->parameters.size(); ++k) {
    const Parameter& p = callee->parameters[k];
    const std::int64_t place = i.operands[2].parts.at(k).displacement;
    for_lanes(callers, [&](int lane) {
      std::memcpy(lane_parameter(f, p.offset, lane), lane_parameter(from, place, lane),
                  static_cast<std::size_t>(p.bytes));
    });
  }
}

void Warp::leave_call() {
  Frame& f = frames_.back();
  Frame& to = frames_[frames_.size() - 2];
  for (std::size_t k = 0; k < f.call->operands[1].parts.size(); ++k) {
    const Parameter& p = f.routine->results.at(k);
    const std::int64_t place = f.call->operands[1].parts[k].displacement;
    for_lanes(f.callers, [&](int lane) {
      std::memcpy(lane_parameter(to, place, lane), lane_parameter(f, p.offset, lane),
                  static_cast<std::size_t>(p.bytes));
    });
  }
  frames_.pop_back();
}

std::uint8_t* Warp::address(const Instruction& i, const Operand& o, int lane, int n, Access access,
                            const void* value) {
  std::uint64_t a = static_cast<std::uint64_t>(o.displacement);
  if (o.has_base) {
    a += o.bytes == 8 ? lanes<std::uint64_t>(o.offset)[lane] : lanes<std::uint32_t>(o.offset)[lane];
  }
  switch (i.space) {
    case Space::kShared:
      return shared(a & 0xffffffffu, lane, n, access, value);
    case Space::kLocal:
      if (a + static_cast<std::uint64_t>(n) > local_stride_)
        fail("access outside local memory", lane);
      return local_.data() + static_cast<std::size_t>(lane) * local_stride_ + a;
    case Space::kParam: {
      Frame& f = frames_.back();
      if (static_cast<std::int64_t>(a) < f.routine->bank_bytes) {
        return const_cast<std::uint8_t*>(block_->launch.parameters.data()) + a;
      }
      return lane_parameter(f, static_cast<std::int64_t>(a), lane);
    }
    default:
      return generic(a, lane, n, access, value);
  }
}

std::uint8_t* Warp::shared(std::uint64_t offset, int lane, int n, Access access,
                           const void* value) {
  Block& b = *block_;
  if (!b.is_shared(offset, static_cast<std::uint64_t>(n))) {
    fail("access to shared memory out of bounds (offset " + std::to_string(offset) + ", " +
             std::to_string(n) +
             " bytes; dynamic shared memory: " + std::to_string(b.launch.dynamic_shared) +
             " bytes from " + std::to_string(kDynamicShared) + ")",
         lane);
  }
  if (offset % static_cast<std::uint64_t>(n) != 0) fail("misaligned access to shared memory", lane);
  std::uint8_t* memory = b.shared.data() + offset;
  use(b.shared_checks, offset, lane, n, access, value, memory);
  return memory;
}

void Warp::release_to_async() {
  for_lanes(active, [&](int lane) { released_[lane] = clocks.now(); });
  clocks.meet(0);  // later writes have a later time
}

std::uint8_t* Warp::generic(std::uint64_t a, int lane, int n, Access access, const void* value) {
  if (is_in(Space::kShared, a, lane))
    return shared(address_in(Space::kShared, a, lane), lane, n, access, value);
  auto* memory = reinterpret_cast<std::uint8_t*>(a);
  if (is_in(Space::kLocal, a, lane)) return memory;
  const std::vector<std::uint8_t>& bank = block_->launch.parameters;
  if (access == Access::kRead && memory >= bank.data() && memory + n <= bank.data() + bank.size())
    return memory;
  Machine& m = block_->machine;
  Allocation* allocation = m.memory.find(a, static_cast<std::size_t>(n));
  if (allocation == nullptr) {
    char text[32];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(a));
    fail(std::string(access == Access::kRead ? "read" : "write") + " of " + std::to_string(n) +
             " bytes out of bounds (address " + text + " is not memory of the device)",
         lane);
  }
  if (a % static_cast<std::uint64_t>(n) != 0) fail("misaligned access", lane);
  (access == Access::kRead ? m.statistics.bytes_read : m.statistics.bytes_written) +=
      static_cast<std::uint64_t>(n);
  if (allocation->kind == Allocation::Kind::kPeer) return memory;
  if (allocation->kind == Allocation::Kind::kPinned && access != Access::kWrite)
    require_unchanged(*allocation, memory, n, lane);
  use(allocation->checked, a - allocation->start, lane, n, access, value, memory);
  return memory;
}

void Warp::require_unchanged(Allocation& allocation, const std::uint8_t* memory, int n, int lane) {
  const HostMemory* host = block_->launch.host.get();
  if (host != nullptr && host->is_changed(allocation, memory, static_cast<std::size_t>(n)))
    fail("host memory was changed while a kernel that reads it was pending", lane);
}

void Warp::use(CheckedBytes& bytes, std::size_t offset, int lane, int n, Access access,
               const void* value, const std::uint8_t* memory) {
  const Checks& checks = block_->machine.checks;
  const auto size = static_cast<std::size_t>(n);
  if (checks.written) {
    const bool is_written = bytes.is_written(offset, size);
    if (access != Access::kWrite && !is_written) fail("read of memory that was not written", lane);
    // What is there already may be written by any thread at any time.
    if (access == Access::kWrite && value != nullptr && is_written &&
        std::memcmp(memory, value, size) == 0)
      return;
    if (access != Access::kRead) bytes.mark_written(offset, size);
  }
  if (checks.races)
    block_->touch(*this, lane, bytes, offset, n, access != Access::kRead,
                  access == Access::kAtomic);
}

std::uint64_t Warp::generic_address(Space space, std::uint64_t a, int lane) {
  switch (space) {
    case Space::kShared:
      return reinterpret_cast<std::uint64_t>(block_->shared.data()) + a;
    case Space::kLocal:
      return reinterpret_cast<std::uint64_t>(local_.data()) +
             static_cast<std::size_t>(lane) * local_stride_ + a;
    case Space::kParam: {
      Frame& f = frames_.back();
      if (static_cast<std::int64_t>(a) < f.routine->bank_bytes) {
        return reinterpret_cast<std::uint64_t>(block_->launch.parameters.data()) + a;
      }
      return reinterpret_cast<std::uint64_t>(lane_parameter(f, static_cast<std::int64_t>(a), lane));
    }
    default:
      return a;
  }
}

std::uint64_t Warp::address_in(Space space, std::uint64_t generic, int lane) {
  return generic - generic_address(space == Space::kParam ? Space::kGlobal : space, 0, lane);
}

bool Warp::is_in(Space space, std::uint64_t generic, int lane) {
  const std::uint64_t offset = address_in(space, generic, lane);
  if (space == Space::kShared) return offset < block_->shared.size();
  if (space == Space::kLocal) return offset < local_stride_;
  return !is_in(Space::kShared, generic, lane) && !is_in(Space::kLocal, generic, lane);
}

void Warp::fail(const std::string& what, int lane) const {
  const Launch& l = block_->launch;
  const auto triple = [](std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
  };
  std::string text = what + "\n  kernel " + l.kernel->name + ", block " +
                     triple(block_->index.x, block_->index.y, block_->index.z) + ", ";
  if (lane < 0) {
    text += "warp " + std::to_string(index_);
  } else {
    const auto t = static_cast<std::uint32_t>(index_ * kLanes + lane);
    text += "thread " + triple(t % l.block.x, t / l.block.x % l.block.y, t / l.block.x / l.block.y);
  }
  if (current_ != nullptr)
    text += "\n  PTX line " + std::to_string(current_->line) + ": " + current_->text;
  throw Fault(text);
}

}  // namespace taper::gpuemu
