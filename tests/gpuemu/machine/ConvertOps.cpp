// SPDX-License-Identifier: Apache-2.0
//
// Moves between registers, also to and from vectors of parts, and conversions of types.
#include <cfenv>
#include <cmath>
#include <limits>

#include "base/Bf16.hpp"
#include "gpuemu/machine/Lanes.hpp"
#include "gpuemu/machine/SmallFloats.hpp"

namespace taper::gpuemu {
namespace {

// A value between its two types: integers exactly, floats as doubles, which hold f32 exactly.
struct Value {
  bool is_float = false;
  double real = 0.0;
  __int128 integer = 0;
};

float flushed(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}

bool is_real(const Type& t) {
  return t.kind == 'f' || t.kind == 'h' || (t.kind == 'x' && t.bits == 16);
}

Value read(const Type& t, std::uint64_t bits, bool ftz) {
  Value v;
  v.is_float = is_real(t);
  if (t.kind == 'h') {
    v.real = to_float(bf16{static_cast<std::uint16_t>(bits)});
  } else if (t.kind == 'x') {
    v.real = half_to_float(static_cast<std::uint16_t>(bits));
  } else if (t.kind == 'f' && t.bits == 32) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    v.real = ftz ? flushed(x) : x;
  } else if (t.kind == 'f') {
    v.real = std::bit_cast<double>(bits);
  } else if (t.kind == 's') {
    v.integer = static_cast<std::int64_t>(bits << (64 - t.bits)) >> (64 - t.bits);
  } else {
    v.integer = t.bits == 64 ? bits : bits & ((std::uint64_t{1} << t.bits) - 1);
  }
  return v;
}

double to_integral(double x, const Instruction& i) {
  if (i.has("rzi")) return std::trunc(x);
  if (i.has("rmi")) return std::floor(x);
  if (i.has("rpi")) return std::ceil(x);
  return std::nearbyint(x);
}

// Out of range, the nearest value of the type; NaN becomes 0 (or the highest bit for 64 bits).
std::uint64_t to_integer(double x, const Type& t, const Instruction& i) {
  if (std::isnan(x)) return t.bits == 64 ? std::uint64_t{1} << 63 : 0;
  const double whole = to_integral(x, i);
  if (t.kind == 's') {
    const double limit = std::ldexp(1.0, t.bits - 1);
    if (whole >= limit) return (std::uint64_t{1} << (t.bits - 1)) - 1;
    if (whole < -limit) return std::uint64_t{1} << (t.bits - 1);
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(whole));
  }
  if (whole <= 0) return 0;
  if (whole >= std::ldexp(1.0, t.bits))
    return t.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << t.bits) - 1;
  return static_cast<std::uint64_t>(whole);
}

class RoundingMode {
 public:
  explicit RoundingMode(const Instruction& i) : before_(std::fegetround()) {
    if (i.has("rz")) std::fesetround(FE_TOWARDZERO);
    if (i.has("rm")) std::fesetround(FE_DOWNWARD);
    if (i.has("rp")) std::fesetround(FE_UPWARD);
  }
  ~RoundingMode() { std::fesetround(before_); }

 private:
  int before_;
};

std::uint64_t write(const Value& v, const Type& t, const Instruction& i, bool ftz) {
  if (!is_real(t)) {
    if (v.is_float) return to_integer(v.real, t, i);
    if (i.has("sat")) {
      const __int128 one = 1;
      const __int128 low = t.kind == 's' ? -(one << (t.bits - 1)) : 0;
      const __int128 high = t.kind == 's' ? (one << (t.bits - 1)) - 1 : (one << t.bits) - 1;
      return static_cast<std::uint64_t>(v.integer < low    ? low
                                        : v.integer > high ? high
                                                           : v.integer);
    }
    return static_cast<std::uint64_t>(v.integer);
  }
  const bool is_to_integral = i.has("rni") || i.has("rzi") || i.has("rmi") || i.has("rpi");
  const RoundingMode mode(i);
  if (t.kind == 'f' && t.bits == 64) {
    const volatile double d = !v.is_float      ? static_cast<double>(v.integer)
                              : is_to_integral ? to_integral(v.real, i)
                                               : v.real;
    return std::bit_cast<std::uint64_t>(double{d});
  }
  volatile float f = v.is_float ? static_cast<float>(v.real) : static_cast<float>(v.integer);
  if (v.is_float && is_to_integral) f = static_cast<float>(to_integral(v.real, i));
  float result = f;
  if (i.has("sat")) result = result > 0.0f ? (result < 1.0f ? result : 1.0f) : 0.0f;
  if (i.has("relu") && !(result > 0.0f)) result = 0.0f;
  if (t.kind == 'h') return float_to_bf16(result);
  if (t.kind == 'x') return float_to_half(result);
  return std::bit_cast<std::uint32_t>(ftz ? flushed(result) : result);
}

void convert(Warp& w, const Instruction& i) {
  const bool ftz = i.has("ftz");
  each_lane(w.active, [&](int l) {
    std::uint64_t bits = write(read(i.from, w.value(i.operands[1], l), ftz), i.type, i, ftz);
    if (i.type.bits < 32) bits &= (std::uint64_t{1} << i.type.bits) - 1;
    // Registers are wider than small signed types.
    if (i.type.kind == 's' && i.type.bits < 32 && i.operands[0].bytes == 4) {
      bits = static_cast<std::uint32_t>(static_cast<std::int32_t>(bits << (32 - i.type.bits)) >>
                                        (32 - i.type.bits));
    }
    w.set(i.operands[0], l, bits);
  });
}

// Two floats in one register, the first one in the upper half.
void convert_pair(Warp& w, const Instruction& i) {
  const bool is_bf16 = i.has("bf16x2");
  each_lane(w.active, [&](int l) {
    std::uint32_t halves[2];
    for (int k = 0; k < 2; ++k) {
      float x = std::bit_cast<float>(
          static_cast<std::uint32_t>(w.value(i.operands[static_cast<std::size_t>(k) + 1], l)));
      if (i.has("relu") && !(x > 0.0f)) x = 0.0f;
      halves[k] = is_bf16 ? float_to_bf16(x) : float_to_half(x);
    }
    w.set(i.operands[0], l, halves[0] << 16 | halves[1]);
  });
}

// Registers, or parts of one: {low, high} make a wider one and the other way round.
void move_parts(Warp& w, const Instruction& i) {
  const Operand &to = i.operands[0], &from = i.operands[1];
  each_lane(w.active, [&](int l) {
    std::uint64_t bits = 0;
    if (from.kind == Operand::Kind::kVector) {
      const int width = i.type.bits / static_cast<int>(from.parts.size());
      const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
      for (std::size_t k = 0; k < from.parts.size(); ++k) {
        bits |= (w.value(from.parts[k], l) & mask) << (static_cast<std::size_t>(width) * k);
      }
    } else {
      bits = w.value(from, l);
    }
    if (to.kind != Operand::Kind::kVector) {
      w.set(to, l, bits);
      return;
    }
    const int width = i.type.bits / static_cast<int>(to.parts.size());
    for (std::size_t k = 0; k < to.parts.size(); ++k) {
      w.set(to.parts[k], l,
            bits >> (static_cast<std::size_t>(width) * k) & ((std::uint64_t{1} << width) - 1));
    }
  });
}

template <class U>
void move_lanes(Warp& w, const Instruction& i) {
  auto* d = w.lanes<U>(i.d);
  const auto* a = w.lanes<U>(i.a);
  each_lane(w.active, [&](int l) { d[l] = a[l]; });
}

void move_address(Warp& w, const Instruction& i) {
  const bool to_space = i.has("to");
  each_lane(w.active, [&](int l) {
    const std::uint64_t a = w.value(i.operands[1], l);
    w.set(i.operands[0], l,
          to_space ? w.address_in(i.space, a, l) : w.generic_address(i.space, a, l));
  });
}

void is_space(Warp& w, const Instruction& i) {
  each_lane(w.active, [&](int l) {
    w.set(i.operands[0], l, w.is_in(i.space, w.value(i.operands[1], l), l) ? 1 : 0);
  });
}

}  // namespace

bool decode_convert(Instruction& i) {
  if (i.opcode[0] != "cvt") return false;
  if (i.has("bf16x2") || i.has("f16x2")) {
    if (i.operands.size() != 3) throw Fault("conversion is not supported: " + i.text);
    i.handler = convert_pair;
  } else {
    i.handler = convert;
  }
  return true;
}

bool decode_move(Instruction& i) {
  const std::string& op = i.opcode[0];
  if (op == "cvta" || op == "isspacep") {
    i.space = i.has("shared") || i.has("shared::cta") || i.has("shared::cluster") ? Space::kShared
              : i.has("local")                                                    ? Space::kLocal
              : i.has("param")                                                    ? Space::kParam
                                                                                  : Space::kGlobal;
    i.handler = op == "cvta" ? move_address : is_space;
    return true;
  }
  if (op != "mov" || i.type.kind == 'p') return false;
  const Operand &to = i.operands[0], &from = i.operands[1];
  const bool is_plain = to.kind == Operand::Kind::kRegister &&
                        from.kind == Operand::Kind::kRegister && to.bytes == from.bytes;
  i.handler = !is_plain       ? move_parts
              : to.bytes == 8 ? move_lanes<std::uint64_t>
                              : move_lanes<std::uint32_t>;
  return true;
}

}  // namespace taper::gpuemu
