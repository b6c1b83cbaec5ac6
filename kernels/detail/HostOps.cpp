// SPDX-License-Identifier: Apache-2.0
#include "kernels/detail/HostOps.hpp"

#include <cstdlib>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/Error.hpp"
#include "kernels/detail/TileCheck.hpp"

namespace taper::detail {
namespace {

#if defined(__x86_64__)
// Whether the processor has tile units for bf16.
bool has_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kTiles = 1u << 24, kBf16 = 1u << 22;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kTiles) != 0 && (d & kBf16) != 0;
}
#endif

// Why tiles cannot be used; empty: they can.
std::string lack_of_tiles([[maybe_unused]] bool has_avx512) {
#if defined(__x86_64__)
  if (!has_avx512 || !has_tiles()) return "this processor has no AMX for bf16";
  if (!ask_for_tiles()) return "the kernel of this system does not permit AMX";
  // The definition of bf16 arithmetic is what these units were seen to compute.
  if (!gives_equal_pairs(amx_ops(), kAvx512Ops)) return "this processor's AMX rounds differently";
  return "";
#else
  return "this processor has no AMX";
#endif
}

const HostOps& choose_host_ops() {
  const char* wish = std::getenv("TAPER_ISA");
  const std::string name = wish == nullptr ? "" : wish;
  TAPER_VALIDATE(
      name.empty() || name == "scalar" || name == "avx2" || name == "avx512" || name == "amx",
      "TAPER_ISA is '" << name << "' (choose scalar, avx2, avx512 or amx, or unset it)");
#if defined(__x86_64__)
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  constexpr bool has_avx512 = false;
#endif
  if (name.empty() || name == "amx") {
    const std::string lack = lack_of_tiles(has_avx512);
    TAPER_VALIDATE(lack.empty() || name.empty(),
                   "TAPER_ISA is amx (" << lack << "); unset it, or set it to avx512");
#if defined(__x86_64__)
    if (lack.empty()) return amx_ops();
#endif
  }
#if defined(__x86_64__)
  if (has_avx512 && (name.empty() || name == "avx512")) return kAvx512Ops;
  if (has_avx2 && name != "scalar") return kAvx2Ops;
#endif
  return kScalarOps;
}

}  // namespace

const HostOps& host_ops() {
  static const HostOps& chosen = choose_host_ops();
  return chosen;
}

}  // namespace taper::detail
