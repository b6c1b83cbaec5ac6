// SPDX-License-Identifier: Apache-2.0
//
// Comparisons, selections, and arithmetic of predicates, which are masks of lanes.
#include <cmath>

#include "gpuemu/machine/Lanes.hpp"

namespace taper::gpuemu {
namespace {

// A predicate operand as a mask.
Mask mask_of(Warp& w, const Operand& o) {
  if (o.kind == Operand::Kind::kPredicate) {
    const Mask m = w.predicate(o.offset);
    return o.is_negated ? ~m : m;
  }
  Mask m = 0;  // an immediate
  for (int l = 0; l < kLanes; ++l) m |= (w.value(o, l) & 1) != 0 ? Mask{1} << l : 0;
  return m;
}

void set_mask(Warp& w, const Operand& o, Mask value) {
  if (o.kind != Operand::Kind::kPredicate) return;
  Mask& p = w.predicate(o.offset);
  p = (p & ~w.active) | (value & w.active);
}

// The comparison itself; then `setp.lt.and p|q, a, b, c` combines it, and its opposite, with c.
void finish(Warp& w, const Instruction& i, Mask compared) {
  Mask result = compared, opposite = ~compared;
  if (i.operands.size() - static_cast<std::size_t>(i.variant) > 3) {
    const Mask c = mask_of(w, i.operands[3]);
    const auto combine = [&](Mask m) { return i.has("and") ? m & c : i.has("or") ? m | c : m ^ c; };
    result = combine(result);
    opposite = combine(opposite);
  }
  set_mask(w, i.operands[0], result);
  if (i.variant == 1) set_mask(w, i.operands.back(), opposite);
}

template <class T, class F>
Handler compare(F) {
  return [](Warp& w, const Instruction& i) {
    const auto* a = w.lanes<Slot<T>>(i.a);
    const auto* b = w.lanes<Slot<T>>(i.b);
    Mask m = 0;
    for (int l = 0; l < kLanes; ++l) m |= Mask{F{}(from_slot<T>(a[l]), from_slot<T>(b[l]))} << l;
    finish(w, i, m);
  };
}

// The same with a register as result: all ones, or 1.0 for f32.
template <class T, class F>
Handler set_register(F) {
  return [](Warp& w, const Instruction& i) {
    each_lane(w.active, [&](int l) {
      const bool is_true =
          F{}(from_slot<T>(w.lanes<Slot<T>>(i.a)[l]), from_slot<T>(w.lanes<Slot<T>>(i.b)[l]));
      w.set(i.operands[0], l, !is_true ? 0 : i.type.kind == 'f' ? 0x3f800000u : ~std::uint64_t{0});
    });
  };
}

template <class T, class F>
void add(HandlerTable& t, const std::string& comparison, const std::string& suffix, F f) {
  for (const char* combine : {"", ".and", ".or", ".xor"}) {
    for (const char* ftz : {"", ".ftz"}) {
      t["setp." + comparison + combine + ftz + suffix] = compare<T>(f);
    }
  }
  for (const char* result : {".u32", ".s32", ".f32"})
    t["set." + comparison + result + suffix] = set_register<T>(f);
}

template <class T>
void add_ordered(HandlerTable& t, const std::string& suffix) {
  add<T>(t, "eq", suffix, [](T a, T b) { return a == b; });
  add<T>(t, "ne", suffix,
         [](T a, T b) { return std::is_floating_point_v<T> ? a < b || a > b : a != b; });
  add<T>(t, "lt", suffix, [](T a, T b) { return a < b; });
  add<T>(t, "le", suffix, [](T a, T b) { return a <= b; });
  add<T>(t, "gt", suffix, [](T a, T b) { return a > b; });
  add<T>(t, "ge", suffix, [](T a, T b) { return a >= b; });
  if (!std::is_unsigned_v<T>) return;
  add<T>(t, "lo", suffix, [](T a, T b) { return a < b; });
  add<T>(t, "ls", suffix, [](T a, T b) { return a <= b; });
  add<T>(t, "hi", suffix, [](T a, T b) { return a > b; });
  add<T>(t, "hs", suffix, [](T a, T b) { return a >= b; });
}

// With u, true also for NaN.
template <class T>
void add_unordered(HandlerTable& t, const std::string& suffix) {
  add<T>(t, "equ", suffix, [](T a, T b) { return !(a < b) && !(a > b); });
  add<T>(t, "neu", suffix, [](T a, T b) { return a != b; });
  add<T>(t, "ltu", suffix, [](T a, T b) { return !(a >= b); });
  add<T>(t, "leu", suffix, [](T a, T b) { return !(a > b); });
  add<T>(t, "gtu", suffix, [](T a, T b) { return !(a <= b); });
  add<T>(t, "geu", suffix, [](T a, T b) { return !(a < b); });
  add<T>(t, "num", suffix, [](T a, T b) { return a == a && b == b; });
  add<T>(t, "nan", suffix, [](T a, T b) { return a != a || b != b; });
}

template <class U>
void select(Warp& w, const Instruction& i) {
  auto* d = w.lanes<U>(i.d);
  const auto* a = w.lanes<U>(i.a);
  const auto* b = w.lanes<U>(i.b);
  const Mask p = mask_of(w, i.operands[3]);
  each_lane(w.active, [&](int l) { d[l] = (p >> l & 1) != 0 ? a[l] : b[l]; });
}

template <class F>
Handler predicates(F) {
  return [](Warp& w, const Instruction& i) {
    const Mask a = mask_of(w, i.operands[1]);
    const Mask b = i.operands.size() > 2 ? mask_of(w, i.operands[2]) : 0;
    set_mask(w, i.operands[0], F{}(a, b));
  };
}

}  // namespace

void add_compare_handlers(HandlerTable& t) {
  add_ordered<std::uint16_t>(t, ".u16");
  add_ordered<std::int16_t>(t, ".s16");
  add_ordered<std::uint16_t>(t, ".b16");
  add_ordered<std::uint32_t>(t, ".u32");
  add_ordered<std::int32_t>(t, ".s32");
  add_ordered<std::uint32_t>(t, ".b32");
  add_ordered<std::uint64_t>(t, ".u64");
  add_ordered<std::int64_t>(t, ".s64");
  add_ordered<std::uint64_t>(t, ".b64");
  add_ordered<float>(t, ".f32");
  add_ordered<double>(t, ".f64");
  add_unordered<float>(t, ".f32");
  add_unordered<double>(t, ".f64");
  for (const char* s : {".b16", ".u16", ".s16", ".b32", ".u32", ".s32", ".f32"})
    t[std::string("selp") + s] = select<std::uint32_t>;
  for (const char* s : {".b64", ".u64", ".s64", ".f64"})
    t[std::string("selp") + s] = select<std::uint64_t>;
  t["and.pred"] = predicates([](Mask a, Mask b) { return a & b; });
  t["or.pred"] = predicates([](Mask a, Mask b) { return a | b; });
  t["xor.pred"] = predicates([](Mask a, Mask b) { return a ^ b; });
  t["not.pred"] = predicates([](Mask a, Mask) { return ~a; });
  t["mov.pred"] = predicates([](Mask a, Mask) { return a; });
}

}  // namespace taper::gpuemu
