// SPDX-License-Identifier: Apache-2.0
//
// Floating-point arithmetic. `.ftz` flushes subnormal operands and results to zero of their sign;
// the host's own mode stays that of IEEE 754. Approximate instructions (ex2, sin, ...) have no bits
// of their own in NVIDIA's documents: they are rounded results of the host's functions here.
#include <cmath>

#include "gpuemu/machine/Lanes.hpp"

namespace taper::gpuemu {
namespace {

struct Keep {
  static float f(float x) { return x; }
};
// A comparison of bits, so that loops over lanes stay vectors.
struct Flush {
  static float f(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return std::bit_cast<float>((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
  }
};

float saturated(float x) {
  return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;  // NaN becomes 0
}

template <class Z>
void add_single(HandlerTable& t, const std::string& z) {
  t["add" + z + ".f32"] =
      binary<float, float>([](float a, float b) { return Z::f(Z::f(a) + Z::f(b)); });
  t["sub" + z + ".f32"] =
      binary<float, float>([](float a, float b) { return Z::f(Z::f(a) - Z::f(b)); });
  t["mul" + z + ".f32"] =
      binary<float, float>([](float a, float b) { return Z::f(Z::f(a) * Z::f(b)); });
  t["fma" + z + ".f32"] = ternary<float, float>(
      [](float a, float b, float c) { return Z::f(__builtin_fmaf(Z::f(a), Z::f(b), Z::f(c))); });
  t["add" + z + ".sat.f32"] =
      binary<float, float>([](float a, float b) { return saturated(Z::f(Z::f(a) + Z::f(b))); });
  t["mul" + z + ".sat.f32"] =
      binary<float, float>([](float a, float b) { return saturated(Z::f(Z::f(a) * Z::f(b))); });
  t["fma" + z + ".sat.f32"] = ternary<float, float>([](float a, float b, float c) {
    return saturated(Z::f(__builtin_fmaf(Z::f(a), Z::f(b), Z::f(c))));
  });
  // The operand that is a number, if one is; -0 is less than +0.
  t["min" + z + ".f32"] = binary<float, float>([](float a, float b) {
    const float x = Z::f(a), y = Z::f(b);
    if (x != x) return y;
    return y != y || x < y || (x == y && std::signbit(x)) ? x : y;
  });
  t["max" + z + ".f32"] = binary<float, float>([](float a, float b) {
    const float x = Z::f(a), y = Z::f(b);
    if (x != x) return y;
    return y != y || x > y || (x == y && std::signbit(y)) ? x : y;
  });
  t["abs" + z + ".f32"] = unary<float, float>([](float a) { return std::fabs(Z::f(a)); });
  t["neg" + z + ".f32"] = unary<float, float>([](float a) { return -Z::f(a); });
  for (const char* kind : {"", ".full", ".approx"}) {
    t[std::string("div") + kind + z + ".f32"] =
        binary<float, float>([](float a, float b) { return Z::f(Z::f(a) / Z::f(b)); });
  }
  for (const char* kind : {"", ".approx"}) {
    t[std::string("sqrt") + kind + z + ".f32"] =
        unary<float, float>([](float a) { return Z::f(std::sqrt(Z::f(a))); });
    t[std::string("rcp") + kind + z + ".f32"] =
        unary<float, float>([](float a) { return Z::f(1.0f / Z::f(a)); });
  }
  const auto approximate = [&](const char* name, auto f) {
    t[std::string(name) + ".approx" + z + ".f32"] = unary<float, float>(f);
  };
  approximate("rsqrt",
              [](float a) { return Z::f(static_cast<float>(1.0 / std::sqrt(double{Z::f(a)}))); });
  approximate("ex2", [](float a) { return Z::f(static_cast<float>(std::exp2(double{Z::f(a)}))); });
  approximate("lg2", [](float a) { return Z::f(static_cast<float>(std::log2(double{Z::f(a)}))); });
  approximate("sin", [](float a) { return Z::f(static_cast<float>(std::sin(double{Z::f(a)}))); });
  approximate("cos", [](float a) { return Z::f(static_cast<float>(std::cos(double{Z::f(a)}))); });
}

void add_double(HandlerTable& t) {
  t["add.f64"] = binary<double, double>([](double a, double b) { return a + b; });
  t["sub.f64"] = binary<double, double>([](double a, double b) { return a - b; });
  t["mul.f64"] = binary<double, double>([](double a, double b) { return a * b; });
  t["div.f64"] = binary<double, double>([](double a, double b) { return a / b; });
  t["fma.f64"] =
      ternary<double, double>([](double a, double b, double c) { return __builtin_fma(a, b, c); });
  t["min.f64"] = binary<double, double>([](double a, double b) { return std::fmin(a, b); });
  t["max.f64"] = binary<double, double>([](double a, double b) { return std::fmax(a, b); });
  t["abs.f64"] = unary<double, double>([](double a) { return std::fabs(a); });
  t["neg.f64"] = unary<double, double>([](double a) { return -a; });
  t["sqrt.f64"] = unary<double, double>([](double a) { return std::sqrt(a); });
  t["rcp.f64"] = unary<double, double>([](double a) { return 1.0 / a; });
  t["rcp.approx.ftz.f64"] = unary<double, double>([](double a) { return 1.0 / a; });
  t["rsqrt.approx.f64"] = unary<double, double>([](double a) { return 1.0 / std::sqrt(a); });
  t["rsqrt.approx.ftz.f64"] = t["rsqrt.approx.f64"];
}

template <class T>
void add_tests(HandlerTable& t, const std::string& s) {
  const auto test = [&](const char* name, auto f) {
    t[std::string("testp.") + name + s] = [](Warp& w, const Instruction& i) {
      each_lane(w.active, [&](int l) {
        w.set(i.operands[0], l, decltype(f){}(from_slot<T>(w.lanes<Slot<T>>(i.a)[l])) ? 1 : 0);
      });
    };
  };
  test("finite", [](T x) { return std::isfinite(x); });
  test("infinite", [](T x) { return std::isinf(x); });
  test("number", [](T x) { return !std::isnan(x); });
  test("notanumber", [](T x) { return std::isnan(x); });
  t["copysign" + s] = binary<T, T>([](T a, T b) { return std::copysign(b, a); });
}

}  // namespace

void add_float_handlers(HandlerTable& t) {
  add_single<Keep>(t, "");
  add_single<Flush>(t, ".ftz");
  add_double(t);
  add_tests<float>(t, ".f32");
  add_tests<double>(t, ".f64");
}

}  // namespace taper::gpuemu
