// SPDX-License-Identifier: Apache-2.0
#include "kernels/detail/HostOps.hpp"

#include <cstdlib>
#include <string>

#include "kernels/CheckOp.hpp"
#include "kernels/detail/Launch.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("the chosen instruction set is the one asked for, or the next that the processor has",
          "[host_ops]") {
  flush_denormals();  // units are compared with plain instructions, which need that
  const char* wish = std::getenv("TAPER_ISA");
  const std::string chosen = detail::host_ops().name, name = wish == nullptr ? "" : wish;
  CHECK((chosen == "scalar" || chosen == "avx2" || chosen == "avx512" || chosen == "avx512bf16" ||
         chosen == "amx"));
  if (name == "scalar") CHECK(chosen == "scalar");
  if (name == "avx2") CHECK((chosen == "avx2" || chosen == "scalar"));
#if defined(__x86_64__)
  if (name == "avx512" && __builtin_cpu_supports("avx512vl")) CHECK(chosen == "avx512");
  if (name == "avx512bf16") CHECK(chosen == "avx512bf16");
  if (name.empty() && __builtin_cpu_supports("avx512bf16"))
    CHECK((chosen == "avx512bf16" || chosen == "amx"));
  if (name == "avx2" && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    CHECK(chosen == "avx2");
#endif
}

TEST_CASE("denormals are flushed in every computing thread", "[host_ops]") {
  flush_denormals();
  Floats tiny(4096, 1e-30f), sums(tiny.size());
  detail::for_each("taper::test_flush", HostExec(), 4096,
                   [&](const std::int64_t i) { sums[i] = tiny[i] * tiny[i] * 1e30f; });
  for (const float value : sums) REQUIRE(value == 0.0f);
}
