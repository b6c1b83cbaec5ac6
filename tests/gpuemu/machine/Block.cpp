// SPDX-License-Identifier: Apache-2.0
#include "gpuemu/machine/Block.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <numeric>
#include <thread>

#include "gpuemu/machine/Warp.hpp"

namespace taper::gpuemu {

bool HostMemory::overlaps(const void* p, std::size_t n) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(p);
  return std::any_of(pieces.begin(), pieces.end(), [&](const auto& piece) {
    return piece.first < begin + n && begin < piece.first + piece.second.size();
  });
}

bool HostMemory::is_changed(Allocation& allocation, const void* p, std::size_t n) const {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  const auto next = pieces.upper_bound(address);
  if (next == pieces.begin()) return false;
  const auto& [start, bytes] = *std::prev(next);
  if (address - start + n > bytes.size()) return false;
  const std::uint8_t* const before = bytes.data() + (address - start);
  const auto* const now = static_cast<const std::uint8_t*>(p);
  if (std::memcmp(before, now, n) == 0) return false;
  for (std::size_t k = 0; k < n; ++k)
    if (now[k] != before[k] &&
        allocation.checked.touches(address + k - allocation.start)->write.launch < pending)
      return true;
  return false;
}

void LaneClocks::reset() {
  now_ = 1;
  for (auto& row : known_) row.fill(0);
}

void LaneClocks::meet(Mask lanes) {
  std::array<std::uint32_t, kLanes> joined{};
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    for (int k = 0; k < kLanes; ++k) joined[k] = std::max(joined[k], known_[lane][k]);
    joined[lane] = now_;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if (lanes >> lane & 1) known_[lane] = joined;
  }
  ++now_;
}

void AsyncCopies::reset() {
  pending_.clear();
  committed_.fill(0);
}

void AsyncCopies::commit(Mask lanes) {
  for (int lane = 0; lane < kLanes; ++lane) committed_[lane] += lanes >> lane & 1;
}

void AsyncCopies::wait(Warp& warp, Mask lanes, std::uint32_t keep, bool with_uncommitted) {
  std::deque<Copy> rest;
  for (const Copy& c : pending_) {
    const std::uint32_t done = committed_[c.lane] > keep ? committed_[c.lane] - keep : 0;
    const bool is_due = (lanes >> c.lane & 1) != 0 && (with_uncommitted || c.group < done);
    if (!is_due) {
      rest.push_back(c);
      continue;
    }
    std::uint8_t* to = warp.shared(c.to, c.lane, c.bytes, Access::kWrite);
    std::memcpy(to, c.from, c.valid);
    std::memset(to + c.valid, 0, static_cast<std::size_t>(c.bytes - c.valid));
  }
  pending_.swap(rest);
}

Block::Block(Machine& m, const Launch& l)
    : machine(m),
      launch(l),
      shared(static_cast<std::size_t>(kDynamicShared) + l.dynamic_shared),
      shared_checks(shared.size()),
      warps_((l.block.count() + kLanes - 1) / kLanes),
      known_(warps_.size(), std::vector<std::uint32_t>(warps_.size())) {}

Block::~Block() = default;

bool Block::is_shared(std::uint64_t offset, std::uint64_t n) const {
  if (offset < static_cast<std::uint64_t>(kDynamicShared)) {
    return offset + n <= static_cast<std::uint64_t>(launch.program->static_shared_bytes());
  }
  return offset + n <= shared.size();
}

void Block::run(Dim at) {
  start(at);
  while (!is_done_) step();
}

void Block::start(Dim at) {
  index = at;
  is_done_ = false;
  idle_steps_ = 0;
  number = at.x + std::uint64_t{launch.grid.x} * (at.y + std::uint64_t{launch.grid.y} * at.z);
  const std::pair<std::size_t, std::size_t> parts[] = {
      {0, static_cast<std::size_t>(launch.program->static_shared_bytes())},
      {static_cast<std::size_t>(kDynamicShared), launch.dynamic_shared}};
  for (const auto& [start, bytes] : parts) {
    std::fill_n(shared.begin() + static_cast<std::ptrdiff_t>(start), bytes, std::uint8_t{0xff});
    shared_checks.mark_written(start, bytes, false);
    if (machine.checks.races) shared_checks.forget_touches(start, bytes);
  }
  memory_barriers.clear();
  for (auto& row : known_) std::fill(row.begin(), row.end(), 0u);
  const auto threads = static_cast<int>(launch.block.count());
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    warps_[w].start(*this, static_cast<int>(w), threads - static_cast<int>(w) * kLanes,
                    *launch.kernel);
  }
}

bool Block::step() {
  std::vector<std::size_t> order(warps_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), machine.random);
  bool is_alive = false, has_run = false;
  for (std::size_t w : order) {
    Warp& warp = warps_[w];
    if (warp.state != Warp::State::kDone) is_alive = true;
    if (warp.state != Warp::State::kReady && warp.state != Warp::State::kWaiting) continue;
    warp.run(64 << machine.random() % 6);
    has_run = has_run || warp.state != Warp::State::kWaiting;
  }
  is_done_ = !is_alive;
  if (is_done_) return true;
  if (release_barriers()) has_run = true;
  // Warps that poll may wait for another process, in a cooperative launch for as long as it takes.
  idle_steps_ = has_run || launch.is_cooperative ? 0 : idle_steps_ + 1;
  const bool is_stuck = std::none_of(warps_.begin(), warps_.end(), [](const Warp& w) {
    return w.state == Warp::State::kReady || w.state == Warp::State::kWaiting;
  });
  if (is_stuck || idle_steps_ > 2'000'000)
    for (const Warp& w : warps_)
      if (w.state != Warp::State::kDone)
        w.fail(is_stuck ? "deadlock: all warps wait, at barriers that not all reach"
                        : "deadlock: all warps poll, and nothing comes");
  return has_run;
}

bool Block::release_barriers() {
  bool has_released = false;
  for (std::size_t first = 0; first < warps_.size(); ++first) {
    if (warps_[first].state != Warp::State::kAtBarrier) continue;
    const int number = warps_[first].barrier;
    std::uint32_t arrived = 0, alive = 0;
    std::vector<std::size_t> waiting;
    for (std::size_t w = 0; w < warps_.size(); ++w) {
      if (warps_[w].state != Warp::State::kDone) alive += kLanes;
      if (warps_[w].state != Warp::State::kAtBarrier || warps_[w].barrier != number) continue;
      arrived += kLanes;
      waiting.push_back(w);
    }
    const std::uint32_t threads = warps_[first].barrier_threads;
    if (arrived < (threads == 0 ? alive : threads)) continue;
    std::vector<std::uint32_t> joined(warps_.size());
    for (std::size_t w : waiting) {
      const std::vector<std::uint32_t> clock = release(warps_[w]);
      for (std::size_t k = 0; k < joined.size(); ++k) joined[k] = std::max(joined[k], clock[k]);
    }
    for (std::size_t w : waiting) {
      acquire(warps_[w], joined);
      warps_[w].state = Warp::State::kReady;
    }
    has_released = true;
  }
  return has_released;
}

// All lanes of a warp speak for one another here: it has met before it waits for other warps.
std::vector<std::uint32_t> Block::release(Warp& warp) {
  const auto w = static_cast<std::size_t>(warp.index());
  known_[w][w] = warp.clocks.now();
  warp.clocks.meet(0);
  return known_[w];
}

void Block::acquire(Warp& warp, const std::vector<std::uint32_t>& clock) {
  auto& known = known_[static_cast<std::size_t>(warp.index())];
  for (std::size_t k = 0; k < clock.size(); ++k) known[k] = std::max(known[k], clock[k]);
}

void Block::check_order(Warp& warp, int lane, const Moment& before, const char* kind) const {
  if (before.launch == 0) return;
  if (before.launch != launch.number) {
    if (machine.is_ordered != nullptr && !machine.is_ordered(before.launch, launch.number)) {
      warp.fail(std::string(kind) +
                    " memory that an operation of another stream uses, without waiting for it",
                lane);
    }
    return;
  }
  if (before.thread / 1024 != number) return;  // of other blocks nothing is known
  const auto other_warp = static_cast<int>(before.thread % 1024 / kLanes);
  const auto other_lane = static_cast<int>(before.thread % kLanes);
  const bool is_known = other_warp == warp.index()
                            ? other_lane == lane || warp.clocks.knows(lane, other_lane, before.time)
                            : knows(warp.index(), other_warp, before.time);
  if (!is_known) {
    warp.fail("race: " + std::string(kind) + " memory that thread " +
                  std::to_string(before.thread % 1024) +
                  " of the block uses, without a barrier in between",
              lane);
  }
}

void Block::touch(Warp& warp, int lane, CheckedBytes& bytes, std::size_t offset, int n,
                  bool is_write, bool is_atomic) {
  Moment now;
  now.launch = launch.number;
  now.time = warp.clocks.now();
  now.thread = number * 1024 + static_cast<std::uint64_t>(warp.index() * kLanes + lane);
  now.is_atomic = is_atomic;
  Touches* t = bytes.touches(offset);
  for (int k = 0; k < (n + 1) / 2; ++k, ++t) {
    if (t->write.thread != now.thread || t->write.launch != now.launch) {
      if (!(is_atomic && t->write.is_atomic && t->write.launch == now.launch)) {
        check_order(warp, lane, t->write, is_write ? "writes" : "reads");
      }
    }
    if (is_write) {
      if (t->read.thread != now.thread) check_order(warp, lane, t->read, "writes");
      if (t->other_read.thread != now.thread) check_order(warp, lane, t->other_read, "writes");
      t->write = now;
    } else if (t->read.launch == now.launch && t->read.thread != now.thread) {
      // The latest two readers are kept: one of a race is most often among them.
      t->other_read = t->read;
      t->read = now;
    } else {
      t->read = now;
    }
  }
}

void Block::require_release(const Warp& warp, int lane, std::size_t offset, int n) {
  if (!machine.checks.races) return;
  const Touches* t = shared_checks.touches(offset);
  for (int k = 0; k < (n + 1) / 2; ++k, ++t) {
    const Moment& write = t->write;
    if (write.launch != launch.number || write.thread / 1024 != number) continue;
    const auto thread = static_cast<std::size_t>(write.thread % 1024);
    if (warps_[thread / kLanes].released(static_cast<int>(thread % kLanes)) < write.time)
      warp.fail("asynchronous read of memory that thread " + std::to_string(thread) +
                    " wrote and did not release to such reads (fence.proxy.async)",
                lane);
  }
}

void Machine::run(const Launch& launch) {
  ++statistics.launches;
  std::vector<Dim> order;
  for (std::uint32_t z = 0; z < launch.grid.z; ++z)
    for (std::uint32_t y = 0; y < launch.grid.y; ++y)
      for (std::uint32_t x = 0; x < launch.grid.x; ++x) order.push_back({x, y, z});
  std::shuffle(order.begin(), order.end(), random);
  if (launch.is_cooperative) return run_together(launch, order);
  Block block(*this, launch);
  for (const Dim& at : order) block.run(at);
}

// In turns. Where all poll, another process has to do something first.
void Machine::run_together(const Launch& launch, const std::vector<Dim>& order) {
  std::vector<std::unique_ptr<Block>> blocks;
  for (const Dim& at : order) {
    blocks.push_back(std::make_unique<Block>(*this, launch));
    blocks.back()->start(at);
  }
  while (!blocks.empty()) {
    bool has_run = false;
    for (const auto& block : blocks) has_run = block->step() || has_run;
    std::erase_if(blocks, [](const auto& block) { return block->is_done(); });
    if (!has_run) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace taper::gpuemu
