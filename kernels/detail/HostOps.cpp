// SPDX-License-Identifier: Apache-2.0
#include "kernels/detail/HostOps.hpp"

#include <cstdlib>
#include <string>

#include "base/Error.hpp"

namespace taper::detail {
namespace {

const HostOps& choose_host_ops() {
  const char* wish = std::getenv("TAPER_ISA");
  const std::string name = wish == nullptr ? "" : wish;
  TAPER_VALIDATE(name.empty() || name == "scalar" || name == "avx2" || name == "avx512",
                 "TAPER_ISA is '" << name << "' (choose scalar, avx2 or avx512, or unset it)");
#if defined(__x86_64__)
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
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
