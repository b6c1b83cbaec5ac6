// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous copies into shared memory. What they write counts as unwritten until it was waited
// for: cp.async by its groups, bulk copies by their memory barrier.
#include <cstring>

#include "gpuemu/machine/Lanes.hpp"

namespace taper::gpuemu {
namespace {

std::uint64_t address_value(Warp& w, const Operand& o, int lane) {
  std::uint64_t a = static_cast<std::uint64_t>(o.displacement);
  if (o.has_base)
    a += o.bytes == 8 ? w.lanes<std::uint64_t>(o.offset)[lane]
                      : w.lanes<std::uint32_t>(o.offset)[lane];
  return a;
}

// The target, which others may neither read nor write until it arrives.
std::uint8_t* begin_write(Warp& w, std::uint64_t offset, int lane, int n) {
  std::uint8_t* to = w.shared(offset, lane, n, Access::kWrite);
  std::memset(to, 0xff, static_cast<std::size_t>(n));
  w.block().shared_checks.mark_written(offset, static_cast<std::size_t>(n), false);
  return to;
}

// `cp.async.cg.shared.global [to], [from], 16{, valid bytes}`
void copy(Warp& w, const Instruction& i) {
  each_lane(w.active, [&](int l) {
    const std::uint64_t to = address_value(w, i.operands[0], l) & 0xffffffffu;
    const int n = static_cast<int>(w.value(i.operands[2], l));
    const int valid = i.operands.size() > 3 && !i.has("L2::cache_hint")
                          ? static_cast<int>(w.value(i.operands[3], l))
                          : n;
    const std::uint64_t source = address_value(w, i.operands[1], l);
    if (source % static_cast<std::uint64_t>(n) != 0)
      w.fail("misaligned source of an asynchronous copy", l);
    for (int k = 0; k < valid; k += 4)
      w.generic(source + static_cast<std::uint64_t>(k), l, std::min(4, valid - k), Access::kRead);
    begin_write(w, to, l, n);
    w.copies.begin({static_cast<std::uint32_t>(to), reinterpret_cast<const std::uint8_t*>(source),
                    static_cast<std::uint16_t>(n), static_cast<std::uint16_t>(valid),
                    static_cast<std::uint8_t>(l), w.copies.open_group(l)});
  });
}

MemoryBarrier& barrier_at(Warp& w, const Operand& o, int lane) {
  const auto place = static_cast<std::uint32_t>(address_value(w, o, lane));
  const auto found = w.block().memory_barriers.find(place);
  if (found == w.block().memory_barriers.end()) w.fail("no mbarrier was initialized there", lane);
  return found->second;
}

// `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [to], [from], bytes,
// [barrier]`
void bulk_copy(Warp& w, const Instruction& i) {
  each_lane(w.active, [&](int l) {
    const std::uint64_t to = address_value(w, i.operands[0], l) & 0xffffffffu;
    const std::uint64_t from = address_value(w, i.operands[1], l);
    const auto bytes = static_cast<std::uint32_t>(w.value(i.operands[2], l));
    if (to % 16 != 0 || from % 16 != 0 || bytes % 16 != 0)
      w.fail("bulk copies need multiples of 16", l);
    for (std::uint32_t k = 0; k < bytes; k += 16) {
      w.generic(from + k, l, 16, Access::kRead);
      begin_write(w, to + k, l, 16);
    }
    barrier_at(w, i.operands[3], l)
        .copies.push_back(
            {static_cast<std::uint32_t>(to), bytes, reinterpret_cast<const std::uint8_t*>(from)});
  });
}

void barrier_init(Warp& w, const Instruction& i) {
  each_lane(w.active, [&](int l) {
    MemoryBarrier b;
    b.count = b.pending = static_cast<std::uint32_t>(w.value(i.operands[1], l));
    w.block().memory_barriers[static_cast<std::uint32_t>(address_value(w, i.operands[0], l))] = b;
  });
}

// A phase is over when all have arrived and the bytes that they announced have come.
void complete(MemoryBarrier& b) {
  if (b.pending > 0 || b.bytes > 0) return;
  ++b.phase;
  b.pending = b.count;
}

// `mbarrier.arrive{.expect_tx} state, [barrier]{, count or bytes}`
void barrier_arrive(Warp& w, const Instruction& i) {
  each_lane(w.active, [&](int l) {
    MemoryBarrier& b = barrier_at(w, i.operands[1], l);
    const std::uint64_t extra = i.operands.size() > 2 ? w.value(i.operands[2], l) : 1;
    std::uint32_t arrivals = 1;
    if (i.has("expect_tx")) {
      b.bytes += static_cast<std::int64_t>(extra);
    } else {
      arrivals = static_cast<std::uint32_t>(extra);
    }
    w.set(i.operands[0], l, b.phase);
    if (arrivals > b.pending) w.fail("more arrivals at an mbarrier than it waits for", l);
    b.pending -= arrivals;
    const std::vector<std::uint32_t> clock = w.block().release(w);
    b.clock.resize(clock.size());
    for (std::size_t k = 0; k < clock.size(); ++k) b.clock[k] = std::max(b.clock[k], clock[k]);
    complete(b);
  });
}

void expect_bytes(Warp& w, const Instruction& i) {
  each_lane(w.active, [&](int l) {
    barrier_at(w, i.operands[0], l).bytes += static_cast<std::int64_t>(w.value(i.operands[1], l));
  });
}

// Bulk copies arrive when somebody looks for them; whoever waits for the barrier is then ordered
// after them.
void deliver(Warp& w, MemoryBarrier& b) {
  Block& block = w.block();
  for (const MemoryBarrier::BulkCopy& c : b.copies) {
    std::memcpy(block.shared.data() + c.to, c.from, c.bytes);
    block.shared_checks.mark_written(c.to, c.bytes);
    block.shared_checks.forget_touches(c.to, c.bytes);
    b.bytes -= c.bytes;
  }
  b.copies.clear();
  complete(b);
}

// `mbarrier.try_wait{.parity} done, [barrier], phase or its parity`
void barrier_wait(Warp& w, const Instruction& i) {
  bool is_done_for_all = true;
  each_lane(w.active, [&](int l) {
    MemoryBarrier& b = barrier_at(w, i.operands[1], l);
    const std::uint64_t asked = w.value(i.operands[2], l);
    const auto is_over = [&] {
      return i.has("parity") ? (b.phase & 1) != (asked & 1) : b.phase != asked;
    };
    if (!is_over()) deliver(w, b);
    if (is_over()) {
      w.block().acquire(w, b.clock);
    } else {
      is_done_for_all = false;
    }
    w.set(i.operands[0], l, is_over() ? 1 : 0);
  });
  if (!is_done_for_all) w.yield();
}

}  // namespace

bool decode_copies(Instruction& i) {
  const std::string& op = i.opcode[0];
  if (op == "mbarrier") {
    if (i.has("init")) {
      i.handler = barrier_init;
    } else if (i.has("arrive")) {
      i.handler = barrier_arrive;
    } else if (i.has("expect_tx")) {
      i.handler = expect_bytes;
    } else if (i.has("try_wait") || i.has("test_wait")) {
      i.handler = barrier_wait;
    } else if (i.has("inval")) {
      i.handler = [](Warp&, const Instruction&) {};
    }
    if (i.handler == nullptr) throw Fault("mbarrier operation is not supported: " + i.text);
    return true;
  }
  if (op != "cp") return false;
  if (i.has("bulk")) {
    if (!i.has("mbarrier::complete_tx::bytes") || i.has("tensor"))
      throw Fault("bulk copy is not supported: " + i.text);
    i.handler = bulk_copy;
  } else if (i.has("commit_group")) {
    i.handler = [](Warp& w, const Instruction&) { w.copies.commit(w.active); };
  } else if (i.has("wait_group")) {
    i.handler = [](Warp& w, const Instruction& in) {
      w.copies.wait(w, w.active, static_cast<std::uint32_t>(w.value(in.operands[0], 0)), false);
    };
  } else if (i.has("wait_all")) {
    i.handler = [](Warp& w, const Instruction&) { w.copies.wait(w, w.active, 0, true); };
  } else if (i.has("async") && i.operands.size() >= 3) {
    i.handler = copy;
  } else {
    throw Fault("copy is not supported: " + i.text);
  }
  return true;
}

}  // namespace taper::gpuemu
