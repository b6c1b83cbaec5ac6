// SPDX-License-Identifier: Apache-2.0
#include "kernels/detail/HostOps.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/Error.hpp"
#include "kernels/detail/BitCheck.hpp"

namespace taper::detail {
namespace {

#if defined(__x86_64__)
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
bool has_dot_products() {
  return has_avx512() && __builtin_cpu_supports("avx512bf16");
}
// Whether the processor has tile units for bf16.
bool has_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kTiles = 1u << 24, kBf16 = 1u << 22;
  return has_avx512() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kTiles) != 0 &&
         (d & kBf16) != 0;
}

// Why instructions cannot be used; empty: they can. Their sums are part of an arithmetic, so they
// must be seen to have its bits on this very processor.
std::string lack_of_dot_products() {
  if (!has_dot_products()) return "this processor has no AVX512-BF16";
  if (!gives_equal_bits(kAvx512Bf16DotOps.product, kAvx512Ops.dot.product))
    return "this processor's AVX512-BF16 rounds differently";
  return "";
}
std::string lack_of_tiles() {
  if (!has_tiles()) return "this processor has no AMX for bf16";
  if (!ask_for_tiles()) return "the kernel of this system does not permit AMX";
  if (!gives_equal_bits(amx_product, kAvx512Ops.pair_product))
    return "this processor's AMX rounds differently";
  return "";
}
void take_dot_products(HostOps& ops) {
  ops.name = "avx512bf16";
  ops.dot = kAvx512Bf16DotOps;
}
void take_tiles(HostOps& ops) {
  ops.name = "amx";
  ops.pair_product = amx_product;
}
#else
std::string lack_of_dot_products() {
  return "this processor has no AVX512-BF16";
}
std::string lack_of_tiles() {
  return "this processor has no AMX";
}
bool has_avx2() {
  return false;
}
bool has_avx512() {
  return false;
}
void take_dot_products(HostOps& /*ops*/) {}
void take_tiles(HostOps& /*ops*/) {}
#endif

HostOps choose_host_ops() {
  const char* wish = std::getenv("TAPER_ISA");
  const std::string name = wish == nullptr ? "" : wish;
  constexpr std::array kNames{"", "scalar", "avx2", "avx512", "avx512bf16", "amx"};
  TAPER_VALIDATE(std::ranges::find(kNames, name) != kNames.end(),
                 "TAPER_ISA is '" << name
                                  << "' (choose scalar, avx2, avx512, avx512bf16 or amx, "
                                     "or unset it)");
  HostOps ops = name == "scalar" || !has_avx2()   ? kScalarOps
                : name == "avx2" || !has_avx512() ? kAvx2Ops
                                                  : kAvx512Ops;
  if (name == "scalar" || name == "avx2" || name == "avx512") return ops;
  const auto check = [&](const char* unit, const std::string& lack) {
    TAPER_VALIDATE(name != unit || lack.empty(),
                   "TAPER_ISA is " << name << " (" << lack << "); unset it, or set it to avx512");
    return lack.empty();
  };
  if (check("avx512bf16", lack_of_dot_products())) take_dot_products(ops);
  if (name != "avx512bf16" && check("amx", lack_of_tiles())) take_tiles(ops);
  return ops;
}

}  // namespace

const HostOps& host_ops() {
  static const HostOps chosen = choose_host_ops();
  return chosen;
}

}  // namespace taper::detail
