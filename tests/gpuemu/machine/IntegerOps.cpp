// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "gpuemu/machine/Lanes.hpp"

namespace taper::gpuemu {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using u128 = unsigned __int128;
using s128 = __int128;

template <class T>
std::string suffix() {
  return std::string(std::is_signed_v<T> ? ".s" : ".u") + std::to_string(sizeof(T) * 8);
}

template <class T>
using Wide = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, s32, u32>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, s64, u64>,
                       std::conditional_t<std::is_signed_v<T>, s128, u128>>>;

template <class T>
constexpr int kBits = static_cast<int>(sizeof(T) * 8);

// Arithmetic goes by unsigned numbers, which wrap.
template <class T>
void add_arithmetic(HandlerTable& t) {
  using U = std::make_unsigned_t<T>;
  const std::string s = suffix<T>();
  t["add" + s] = binary<U, U>([](U a, U b) { return U(a + b); });
  t["sub" + s] = binary<U, U>([](U a, U b) { return U(a - b); });
  t["mul.lo" + s] = binary<U, U>([](U a, U b) { return U(u64{a} * b); });
  t["mad.lo" + s] = ternary<U, U>([](U a, U b, U c) { return U(u64{a} * b + c); });
  t["mul.hi" + s] = binary<T, T>([](T a, T b) { return T(Wide<T>(a) * b >> kBits<T>); });
  t["mad.hi" + s] = ternary<T, T>([](T a, T b, T c) { return T((Wide<T>(a) * b >> kBits<T>)+c); });
  t["div" + s] = binary<T, T>([](T a, T b) {
    if (b == 0) return T(-1);
    return std::is_signed_v<T> && b == T(-1) ? T(U(0) - U(a)) : T(a / b);
  });
  t["rem" + s] = binary<T, T>([](T a, T b) {
    if (b == 0) return a;
    return std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
  });
  t["min" + s] = binary<T, T>([](T a, T b) { return std::min(a, b); });
  t["max" + s] = binary<T, T>([](T a, T b) { return std::max(a, b); });
  t["sad" + s] = ternary<T, T>([](T a, T b, T c) { return T(c + (a > b ? a - b : b - a)); });
  t["neg" + s] = unary<U, U>([](U a) { return U(0 - a); });
  t["abs" + s] = unary<U, T>([](T a) { return a < 0 ? U(U(0) - U(a)) : U(a); });
  t["bfe" + s] = [](Warp& w, const Instruction& i) {
    each_lane(w.active, [&](int l) {
      const auto value = from_slot<T>(w.lanes<Slot<T>>(i.a)[l]);
      const int start = static_cast<int>(w.value(i.operands[2], l) & 0xff);
      const int length = static_cast<int>(w.value(i.operands[3], l) & 0xff);
      const int end = std::min(start + length, kBits<T>);
      T result = 0;
      if (length > 0 && start < kBits<T>) {
        const int drop = kBits<T> - end;
        result = T(T(U(value) << drop) >> (drop + start));
      } else if (length > 0 && std::is_signed_v<T>) {
        result = T(value < 0 ? -1 : 0);
      }
      w.lanes<Slot<T>>(i.d)[l] = to_slot<T>(result);
    });
  };
}

template <class T>
void add_shift_right(HandlerTable& t, const std::string& s) {
  t["shr" + s] = [](Warp& w, const Instruction& i) {
    auto* d = w.lanes<Slot<T>>(i.d);
    const auto* a = w.lanes<Slot<T>>(i.a);
    const auto* b = w.lanes<u32>(i.b);
    each_lane(w.active, [&](int l) {
      const T value = from_slot<T>(a[l]);
      const bool is_over = b[l] >= static_cast<u32>(kBits<T>);
      d[l] = to_slot<T>(is_over ? T(std::is_signed_v<T> && value < 0 ? -1 : 0)
                                : T(value >> (b[l] & (kBits<T> - 1))));
    });
  };
}

template <class U>
void add_bitwise(HandlerTable& t) {
  const std::string s = ".b" + std::to_string(kBits<U>);
  t["and" + s] = binary<U, U>([](U a, U b) { return U(a & b); });
  t["or" + s] = binary<U, U>([](U a, U b) { return U(a | b); });
  t["xor" + s] = binary<U, U>([](U a, U b) { return U(a ^ b); });
  t["not" + s] = unary<U, U>([](U a) { return U(~a); });
  t["cnot" + s] = unary<U, U>([](U a) { return U(a == 0 ? 1 : 0); });
  t["shl" + s] = [](Warp& w, const Instruction& i) {
    auto* d = w.lanes<Slot<U>>(i.d);
    const auto* a = w.lanes<Slot<U>>(i.a);
    const auto* b = w.lanes<u32>(i.b);
    each_lane(w.active, [&](int l) {
      d[l] = to_slot<U>(b[l] >= static_cast<u32>(kBits<U>)
                            ? U(0)
                            : U(from_slot<U>(a[l]) << (b[l] & (kBits<U> - 1))));
    });
  };
  add_shift_right<U>(t, s);
}

template <class U>
void add_counts(HandlerTable& t) {
  const std::string s = ".b" + std::to_string(kBits<U>);
  t["popc" + s] = unary<u32, U>([](U a) { return std::popcount(a); });
  t["clz" + s] = unary<u32, U>([](U a) { return std::countl_zero(a); });
  t["brev" + s] = unary<U, U>([](U a) {
    U r = 0;
    for (int k = 0; k < kBits<U>; ++k) r = U(r << 1 | (a >> k & 1));
    return r;
  });
  t["bfi" + s] = [](Warp& w, const Instruction& i) {
    each_lane(w.active, [&](int l) {
      const u64 start = w.value(i.operands[3], l) & 0xff, length = w.value(i.operands[4], l) & 0xff;
      u64 mask = length >= 64 ? ~u64{0} : (u64{1} << length) - 1;
      mask = start >= 64 ? 0 : mask << start;
      const u64 field = start >= 64 ? 0 : w.value(i.operands[1], l) << start;
      w.set(i.operands[0], l, (w.value(i.operands[2], l) & ~mask) | (field & mask));
    });
  };
}

template <class T>
void add_find(HandlerTable& t) {
  t["bfind" + suffix<T>()] = unary<u32, T>([](T a) {
    const auto bits = static_cast<std::make_unsigned_t<T>>(a < 0 ? ~a : a);
    return bits == 0 ? ~0u : static_cast<u32>(kBits<T> - 1 - std::countl_zero(bits));
  });
  t["bfind.shiftamt" + suffix<T>()] = unary<u32, T>([](T a) {
    const auto bits = static_cast<std::make_unsigned_t<T>>(a < 0 ? ~a : a);
    return bits == 0 ? ~0u : static_cast<u32>(std::countl_zero(bits));
  });
}

template <class T>
void add_widening(HandlerTable& t) {
  t["mul.wide" + suffix<T>()] = binary<Wide<T>, T>([](T a, T b) { return Wide<T>(a) * b; });
  t["mad.wide" + suffix<T>()] = ternary<Wide<T>, T>([](T a, T b, Wide<T> c) {
    using U = std::make_unsigned_t<Wide<T>>;
    return static_cast<Wide<T>>(static_cast<U>(Wide<T>(a) * b) + static_cast<U>(c));
  });
}

// 64 bits, of which a shift by b leaves the upper or the lower half.
void add_funnel(HandlerTable& t) {
  constexpr auto joined = [](u32 low, u32 high) { return u64{high} << 32 | low; };
  t["shf.l.wrap.b32"] = ternary<u32, u32>(
      [](u32 a, u32 b, u32 c) { return u32((u64{b} << 32 | a) << (c & 31) >> 32); });
  t["shf.r.wrap.b32"] =
      ternary<u32, u32>([](u32 a, u32 b, u32 c) { return u32((u64{b} << 32 | a) >> (c & 31)); });
  t["shf.l.b32"] = ternary<u32, u32>([](u32 a, u32 b, u32 c) {
    const u32 n = std::min(c, 32u);
    return n == 32 ? a : u32((u64{b} << 32 | a) << n >> 32);
  });
  t["shf.r.b32"] = ternary<u32, u32>(
      [](u32 a, u32 b, u32 c) { return u32((u64{b} << 32 | a) >> std::min(c, 32u)); });
  static_assert(joined(1, 0) == 1);
}

void lop3(Warp& w, const Instruction& i) {
  each_lane(w.active, [&](int l) {
    const u32 a = w.lanes<u32>(i.a)[l], b = w.lanes<u32>(i.b)[l], c = w.lanes<u32>(i.c)[l];
    const u32 table = static_cast<u32>(w.value(i.operands[4], l));
    u32 r = 0;
    for (u32 k = 0; k < 8; ++k) {
      if ((table >> k & 1) != 0) r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    }
    w.lanes<u32>(i.d)[l] = r;
  });
}

// Bytes of {b, a} by selectors of four bits, of which the highest one repeats the sign.
u32 permuted(u32 a, u32 b, u32 selectors) {
  const u64 bytes = u64{b} << 32 | a;
  u32 r = 0;
  for (int k = 0; k < 4; ++k) {
    const u32 s = selectors >> 4 * k & 15;
    u32 byte = static_cast<u32>(bytes >> 8 * (s & 7)) & 0xff;
    if ((s & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    r |= byte << 8 * k;
  }
  return r;
}

// Additions with a carry per lane, kept in the warp between instructions.
template <class U>
void add_carries(HandlerTable& t, const std::string& s) {
  const auto make = [](auto op) {
    return Handler([](Warp& w, const Instruction& i) {
      each_lane(w.active, [&](int l) {
        const U a = w.lanes<U>(i.a)[l], b = w.lanes<U>(i.b)[l];
        const u128 in = w.carry >> l & 1;
        const auto [value, carry] = decltype(op){}(u128{a}, u128{b}, in);
        w.lanes<U>(i.d)[l] = static_cast<U>(value);
        if (i.has("cc")) w.carry = (w.carry & ~(Mask{1} << l)) | (Mask{carry & 1} << l);
      });
    });
  };
  const auto plus =
      make([](u128 a, u128 b, u128) { return std::pair(a + b, Mask((a + b) >> kBits<U>)); });
  const auto plus_carry = make(
      [](u128 a, u128 b, u128 c) { return std::pair(a + b + c, Mask((a + b + c) >> kBits<U>)); });
  const auto minus = make([](u128 a, u128 b, u128) { return std::pair(a - b, Mask(a < b)); });
  const auto minus_carry =
      make([](u128 a, u128 b, u128 c) { return std::pair(a - b - c, Mask(a < b + c)); });
  t["add.cc" + s] = plus;
  t["addc" + s] = t["addc.cc" + s] = plus_carry;
  t["sub.cc" + s] = minus;
  t["subc" + s] = t["subc.cc" + s] = minus_carry;
}

// c + the low or the high half of a product, plus the carry.
template <class U, bool is_high, bool takes_carry>
void multiply_add_carry(Warp& w, const Instruction& i) {
  each_lane(w.active, [&](int l) {
    const u128 product = u128{w.lanes<U>(i.a)[l]} * w.lanes<U>(i.b)[l];
    const u128 part = is_high ? product >> kBits<U> : static_cast<U>(product);
    const u128 sum = part + w.lanes<U>(i.c)[l] + (takes_carry ? w.carry >> l & 1 : 0);
    w.lanes<U>(i.d)[l] = static_cast<U>(sum);
    if (i.has("cc")) w.carry = (w.carry & ~(Mask{1} << l)) | (Mask(sum >> kBits<U>) & 1) << l;
  });
}

template <class U>
void add_multiply_carries(HandlerTable& t, const std::string& s) {
  t["mad.lo.cc" + s] = multiply_add_carry<U, false, false>;
  t["mad.hi.cc" + s] = multiply_add_carry<U, true, false>;
  t["madc.lo" + s] = t["madc.lo.cc" + s] = multiply_add_carry<U, false, true>;
  t["madc.hi" + s] = t["madc.hi.cc" + s] = multiply_add_carry<U, true, true>;
}

}  // namespace

void add_integer_handlers(HandlerTable& t) {
  add_arithmetic<u16>(t);
  add_arithmetic<s16>(t);
  add_arithmetic<u32>(t);
  add_arithmetic<s32>(t);
  add_arithmetic<u64>(t);
  add_arithmetic<s64>(t);
  add_bitwise<u16>(t);
  add_bitwise<u32>(t);
  add_bitwise<u64>(t);
  add_shift_right<u16>(t, ".u16");
  add_shift_right<s16>(t, ".s16");
  add_shift_right<u32>(t, ".u32");
  add_shift_right<s32>(t, ".s32");
  add_shift_right<u64>(t, ".u64");
  add_shift_right<s64>(t, ".s64");
  add_counts<u32>(t);
  add_counts<u64>(t);
  add_find<u32>(t);
  add_find<s32>(t);
  add_find<u64>(t);
  add_find<s64>(t);
  add_widening<u16>(t);
  add_widening<s16>(t);
  add_widening<u32>(t);
  add_widening<s32>(t);
  add_funnel(t);
  for (const char* s : {".u32", ".s32", ".b32"}) {
    add_carries<u32>(t, s);
    add_multiply_carries<u32>(t, s);
  }
  for (const char* s : {".u64", ".s64", ".b64"}) {
    add_carries<u64>(t, s);
    add_multiply_carries<u64>(t, s);
  }
  t["lop3.b32"] = lop3;
  t["prmt.b32"] = ternary<u32, u32>([](u32 a, u32 b, u32 c) { return permuted(a, b, c); });
}

}  // namespace taper::gpuemu
