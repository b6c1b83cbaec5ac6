// SPDX-License-Identifier: Apache-2.0
//
// Handlers of instructions that compute each lane by itself, made of functions of one lane.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "gpuemu/machine/Warp.hpp"

namespace taper::gpuemu {

// Registers of 16 bits lie in lanes of 32.
template <class T>
using Slot = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <class T>
T from_slot(Slot<T> slot) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<T>(slot);
  } else {
    return static_cast<T>(slot);
  }
}

template <class T>
Slot<T> to_slot(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<Slot<T>>(value);
  } else {
    return static_cast<Slot<T>>(static_cast<std::make_unsigned_t<T>>(value));
  }
}

template <class F>
void each_lane(Mask lanes, F&& f) {
  if (lanes == kAllLanes) {
    for (int lane = 0; lane < kLanes; ++lane) f(lane);
  } else {
    for (; lanes != 0; lanes &= lanes - 1) f(std::countr_zero(lanes));
  }
}

// Handlers with a result of type D and operands of type T. F is a function without state.
template <class D, class T, class F>
Handler unary(F) {
  return [](Warp& w, const Instruction& i) {
    auto* d = w.lanes<Slot<D>>(i.d);
    const auto* a = w.lanes<Slot<T>>(i.a);
    each_lane(w.active, [&](int l) { d[l] = to_slot<D>(static_cast<D>(F{}(from_slot<T>(a[l])))); });
  };
}

template <class D, class T, class F>
Handler binary(F) {
  return [](Warp& w, const Instruction& i) {
    auto* d = w.lanes<Slot<D>>(i.d);
    const auto* a = w.lanes<Slot<T>>(i.a);
    const auto* b = w.lanes<Slot<T>>(i.b);
    each_lane(w.active, [&](int l) {
      d[l] = to_slot<D>(static_cast<D>(F{}(from_slot<T>(a[l]), from_slot<T>(b[l]))));
    });
  };
}

// The third operand has the type of the result.
template <class D, class T, class F>
Handler ternary(F) {
  return [](Warp& w, const Instruction& i) {
    auto* d = w.lanes<Slot<D>>(i.d);
    const auto* a = w.lanes<Slot<T>>(i.a);
    const auto* b = w.lanes<Slot<T>>(i.b);
    const auto* c = w.lanes<Slot<D>>(i.c);
    each_lane(w.active, [&](int l) {
      d[l] = to_slot<D>(
          static_cast<D>(F{}(from_slot<T>(a[l]), from_slot<T>(b[l]), from_slot<D>(c[l]))));
    });
  };
}

// Handlers by opcode, without modifiers that mean nothing here (Decode.cpp).
using HandlerTable = std::unordered_map<std::string, Handler>;

void add_integer_handlers(HandlerTable& table);
void add_float_handlers(HandlerTable& table);
void add_compare_handlers(HandlerTable& table);

// Families whose opcodes say more than a table can hold; false if the instruction is of none.
bool decode_convert(Instruction& i);
bool decode_move(Instruction& i);
bool decode_memory(Instruction& i);
bool decode_warp(Instruction& i);
bool decode_copies(Instruction& i);
bool decode_tensor(Instruction& i);
bool decode_warpgroup(Instruction& i);

}  // namespace taper::gpuemu
