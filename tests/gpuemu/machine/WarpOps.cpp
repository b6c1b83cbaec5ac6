// SPDX-License-Identifier: Apache-2.0
//
// Instructions in which the lanes of a warp exchange values, and barriers of a block.
#include <algorithm>

#include "gpuemu/machine/Lanes.hpp"

namespace taper::gpuemu {
namespace {

Mask members(Warp& w, const Instruction& i, int lane) {
  return static_cast<Mask>(w.value(i.operands[static_cast<std::size_t>(i.members)], lane)) &
         w.live();
}

// `shfl.sync.mode.b32 d|p, a, b, c, mask`: c holds the clamp and the mask of segments.
void shuffle(Warp& w, const Instruction& i) {
  std::uint32_t source[kLanes];
  std::copy_n(w.lanes<std::uint32_t>(i.a), kLanes, source);
  const Mask active = w.active;
  each_lane(active, [&](int l) {
    const int b = static_cast<int>(w.value(i.operands[2], l) & 31);
    const int c = static_cast<int>(w.value(i.operands[3], l));
    const int segment = c >> 8 & 31, clamp = c & 31;
    const int highest = (l & segment) | (clamp & ~segment);
    const int lowest = l & segment;
    int from = l;
    bool is_inside = true;
    if (i.has("up")) {
      from = l - b;
      is_inside = from >= highest;
    } else if (i.has("down")) {
      from = l + b;
      is_inside = from <= highest;
    } else if (i.has("bfly")) {
      from = l ^ b;
      is_inside = from <= highest;
    } else {
      from = lowest | (b & ~segment);
      is_inside = from <= highest;
    }
    if (!is_inside) from = l;
    if ((active >> from & 1) == 0)
      w.fail("shuffle from lane " + std::to_string(from) + ", which takes no part", l);
    w.set(i.operands[0], l, source[from]);
    if (i.variant == 1) w.set(i.operands.back(), l, is_inside ? 1 : 0);
  });
}

void vote(Warp& w, const Instruction& i) {
  Mask votes = 0;
  each_lane(w.active,
            [&](int l) { votes |= (w.value(i.operands[1], l) & 1) != 0 ? Mask{1} << l : 0; });
  each_lane(w.active, [&](int l) {
    const Mask who = members(w, i, l), yes = votes & who;
    std::uint64_t result = yes;
    if (i.has("all")) result = yes == who;
    if (i.has("any")) result = yes != 0;
    if (i.has("uni")) result = yes == who || yes == 0;
    w.set(i.operands[0], l, result);
  });
}

void match(Warp& w, const Instruction& i) {
  std::uint64_t values[kLanes] = {};
  each_lane(w.active, [&](int l) { values[l] = w.value(i.operands[1], l); });
  each_lane(w.active, [&](int l) {
    Mask equal = 0;
    const Mask who = members(w, i, l);
    each_lane(who, [&](int k) { equal |= values[k] == values[l] ? Mask{1} << k : 0; });
    if (i.has("all")) {
      w.set(i.operands[0], l, equal == who ? who : 0);
      if (i.variant == 1) w.set(i.operands.back(), l, equal == who ? 1 : 0);
    } else {
      w.set(i.operands[0], l, equal);
    }
  });
}

void reduce(Warp& w, const Instruction& i) {
  std::uint32_t values[kLanes] = {};
  each_lane(w.active,
            [&](int l) { values[l] = static_cast<std::uint32_t>(w.value(i.operands[1], l)); });
  each_lane(w.active, [&](int l) {
    const Mask who = members(w, i, l);
    std::uint32_t r = values[std::countr_zero(who)];
    each_lane(who & (who - 1), [&](int k) {
      const std::uint32_t v = values[k];
      const auto a = static_cast<std::int32_t>(r), b = static_cast<std::int32_t>(v);
      if (i.has("add")) r += v;
      if (i.has("and")) r &= v;
      if (i.has("or")) r |= v;
      if (i.has("xor")) r ^= v;
      if (i.has("min"))
        r = i.type.kind == 's' ? static_cast<std::uint32_t>(std::min(a, b)) : std::min(r, v);
      if (i.has("max"))
        r = i.type.kind == 's' ? static_cast<std::uint32_t>(std::max(a, b)) : std::max(r, v);
    });
    w.set(i.operands[0], l, r);
  });
}

void elect(Warp& w, const Instruction& i) {
  each_lane(w.active, [&](int l) {
    const int leader = std::countr_zero(members(w, i, l));
    w.set(i.operands[0], l, static_cast<std::uint64_t>(leader));
    if (i.variant == 1) w.set(i.operands.back(), l, l == leader ? 1 : 0);
  });
}

void active_mask(Warp& w, const Instruction& i) {
  each_lane(w.active, [&](int l) { w.set(i.operands[0], l, w.active); });
}

void warp_barrier(Warp& w, const Instruction&) {
  w.clocks.meet(w.active);
}

void block_barrier(Warp& w, const Instruction& i) {
  const int lane = std::countr_zero(w.active);
  w.barrier = i.operands.empty() ? 0 : static_cast<int>(w.value(i.operands[0], lane));
  w.barrier_threads =
      i.operands.size() > 1 ? static_cast<std::uint32_t>(w.value(i.operands[1], lane)) : 0;
  w.clocks.meet(w.active);
  w.state = Warp::State::kAtBarrier;
}

void meet(Instruction& i, Handler handler, int mask_operand) {
  i.flow = Flow::kMeet;
  i.handler = handler;
  i.members = mask_operand;
}

}  // namespace

bool decode_warp(Instruction& i) {
  const std::string& op = i.opcode[0];
  if (op == "bar" || op == "barrier") {
    if (i.has("warp")) {
      meet(i, warp_barrier, 0);
    } else if (i.has("sync")) {
      i.flow = Flow::kBarrier;
      i.handler = block_barrier;
    } else {
      throw Fault("barrier is not supported: " + i.text);
    }
  } else if (op == "shfl") {
    meet(i, shuffle, 4);
  } else if (op == "vote") {
    meet(i, vote, 2);
  } else if (op == "match") {
    meet(i, match, 2);
  } else if (op == "redux") {
    meet(i, reduce, 2);
  } else if (op == "elect") {
    meet(i, elect, 1);
  } else if (op == "activemask") {
    i.handler = active_mask;
  } else {
    return false;
  }
  return true;
}

}  // namespace taper::gpuemu
