// SPDX-License-Identifier: Apache-2.0
//
// Loads, stores and atomic operations.
#include <cstring>

#include "gpuemu/machine/Lanes.hpp"

namespace taper::gpuemu {
namespace {

const Operand& part(const Operand& o, int k) {
  return o.kind == Operand::Kind::kVector ? o.parts[static_cast<std::size_t>(k)] : o;
}

std::uint64_t extended(std::uint64_t value, const Type& t) {
  if (t.kind != 's' || t.bits == 64) return value;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << (64 - t.bits)) >>
                                    (64 - t.bits));
}

void load(Warp& w, const Instruction& i) {
  const int n = i.type.bytes();
  each_lane(w.active, [&](int l) {
    const std::uint8_t* from = w.address(i, i.operands[1], l, n * i.count, Access::kRead);
    for (int k = 0; k < i.count; ++k) {
      std::uint64_t value = 0;
      std::memcpy(&value, from + k * n, static_cast<std::size_t>(n));
      w.set(part(i.operands[0], k), l, extended(value, i.type));
    }
  });
}

void store(Warp& w, const Instruction& i) {
  const int n = i.type.bytes();
  each_lane(w.active, [&](int l) {
    std::uint8_t bytes[32];
    for (int k = 0; k < i.count; ++k) {
      const std::uint64_t value = w.value(part(i.operands[1], k), l);
      std::memcpy(bytes + k * n, &value, static_cast<std::size_t>(n));
    }
    std::uint8_t* to = w.address(i, i.operands[0], l, n * i.count, Access::kWrite, bytes);
    std::memcpy(to, bytes, static_cast<std::size_t>(n * i.count));
  });
}

enum class Update {
  kAdd,
  kExchange,
  kCompareAndSwap,
  kAnd,
  kOr,
  kXor,
  kMin,
  kMax,
  kIncrement,
  kDecrement
};

template <class T>
T updated(Update update, T old, T operand, T operand2) {
  switch (update) {
    case Update::kAdd:
      return static_cast<T>(old + operand);
    case Update::kExchange:
      return operand;
    case Update::kCompareAndSwap:
      return old == operand ? operand2 : old;
    case Update::kMin:
      return operand < old ? operand : old;
    case Update::kMax:
      return operand > old ? operand : old;
    case Update::kIncrement:
      return old >= operand ? T(0) : static_cast<T>(old + 1);
    case Update::kDecrement:
      return old == T(0) || old > operand ? operand : static_cast<T>(old - 1);
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (update == Update::kAnd) return old & operand;
    if (update == Update::kOr) return old | operand;
    if (update == Update::kXor) return old ^ operand;
  }
  return old;
}

// In a loop of compare and exchange of the host, since other processes may use the memory, too.
template <class T>
void atomic(Warp& w, const Instruction& i) {
  const bool returns = i.opcode[0] == "atom";
  const std::size_t first = returns ? 1 : 0;
  const auto update = static_cast<Update>(i.variant);
  each_lane(w.active, [&](int l) {
    using S = std::conditional_t<sizeof(T) == 2, std::uint16_t, Slot<T>>;
    auto* at = reinterpret_cast<S*>(w.address(i, i.operands[first], l, sizeof(T), Access::kAtomic));
    const T a = from_slot<T>(static_cast<Slot<T>>(w.value(i.operands[first + 1], l)));
    const T b = i.operands.size() > first + 2
                    ? from_slot<T>(static_cast<Slot<T>>(w.value(i.operands[first + 2], l)))
                    : T{};
    S old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(
        at, &old,
        static_cast<S>(to_slot<T>(updated(update, from_slot<T>(static_cast<Slot<T>>(old)), a, b))),
        false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    if (returns) w.set(i.operands[0], l, old);
  });
}

Space space_of(const Instruction& i) {
  for (const std::string& word : i.opcode) {
    if (word == "global") return Space::kGlobal;
    if (word.rfind("shared", 0) == 0) return Space::kShared;
    if (word == "local") return Space::kLocal;
    if (word.rfind("param", 0) == 0) return Space::kParam;
    if (word == "const") return Space::kConst;
  }
  return Space::kGeneric;
}

void decode_atomic(Instruction& i) {
  static const std::pair<const char*, Update> updates[] = {
      {"add", Update::kAdd},      {"exch", Update::kExchange}, {"cas", Update::kCompareAndSwap},
      {"and", Update::kAnd},      {"or", Update::kOr},         {"xor", Update::kXor},
      {"min", Update::kMin},      {"max", Update::kMax},       {"inc", Update::kIncrement},
      {"dec", Update::kDecrement}};
  bool is_known = false;
  for (const auto& [name, update] : updates) {
    if (!i.has(name)) continue;
    i.variant = static_cast<int>(update);
    is_known = true;
  }
  const Type t = i.type;
  if (t.kind == 'f') {
    i.handler = t.bits == 32 ? atomic<float> : atomic<double>;
  } else if (t.kind == 's') {
    i.handler = t.bits == 32 ? atomic<std::int32_t> : atomic<std::int64_t>;
  } else if (t.kind == 'u' || t.kind == 'b') {
    i.handler = t.bits == 16   ? atomic<std::uint16_t>
                : t.bits == 32 ? atomic<std::uint32_t>
                : t.bits == 64 ? atomic<std::uint64_t>
                               : nullptr;
  }
  if (!is_known || i.handler == nullptr)
    throw Fault("atomic operation is not supported: " + i.text);
}

}  // namespace

bool decode_memory(Instruction& i) {
  const std::string& op = i.opcode[0];
  if (op == "ld" || op == "ldu" || op == "st") {
    i.count = i.has("v8") ? 8 : i.has("v4") ? 4 : i.has("v2") ? 2 : 1;
    i.space = space_of(i);
    if (i.type.bits == 128) throw Fault("128-bit registers are not supported: " + i.text);
    i.handler = op == "st" ? store : load;
    return true;
  }
  if (op != "atom" && op != "red") return false;
  i.space = space_of(i);
  decode_atomic(i);
  return true;
}

}  // namespace taper::gpuemu
