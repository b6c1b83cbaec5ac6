// SPDX-License-Identifier: Apache-2.0
#include "kernels/detail/ChosenOps.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "kernels/detail/BitCheck.hpp"

namespace taper {
namespace detail {
namespace {

#if defined(__x86_64__)
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
// Whether the processor has tile units for bf16.
bool has_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kTiles = 1u << 24, kBf16 = 1u << 22;
  return has_avx512() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kTiles) != 0 &&
         (d & kBf16) != 0;
}

// Sums of these two units are part of an arithmetic, so they must be seen to have its bits on this
// very processor.
FoundInstructions find_dot_products() {
  if (!has_avx512() || !__builtin_cpu_supports("avx512bf16"))
    return {false, "this processor has no AVX512-BF16"};
  if (!gives_equal_bits(kAvx512Bf16PairOps.dot_product, kAvx512Ops.pairs.dot_product))
    return {true, "this processor's AVX512-BF16 rounds differently"};
  return {true, ""};
}
FoundInstructions find_tiles() {
  if (!has_tiles()) return {false, "this processor has no AMX for bf16"};
  if (!ask_for_tiles()) return {true, "the kernel of this system does not permit AMX"};
  if (!gives_equal_bits(amx_product, kAvx512Ops.tile_product))
    return {true, "this processor's AMX rounds differently"};
  return {true, ""};
}
#endif

struct Chosen {
  InstructionTable found;
  HostOps ops;
};
const Chosen& chosen() {
  static const Chosen once = [] {
    const char* wish = std::getenv("TAPER_ISA");
    InstructionTable found = find_instructions();
    HostOps ops = choose_host_ops(wish == nullptr ? "" : wish, found);
    return Chosen{std::move(found), ops};
  }();
  return once;
}

}  // namespace

InstructionTable find_instructions() {
  InstructionTable found;
  found.fill({false, "this program was built for another processor"});
  found[0] = {true, ""};
#if defined(__x86_64__)
  found[1] = {has_avx2(), has_avx2() ? "" : "this processor has no AVX2 with FMA"};
  found[2] = {has_avx512(), has_avx512() ? "" : "this processor has no AVX-512 (F, BW, DQ, VL)"};
  found[3] = find_dot_products();
  found[4] = find_tiles();
#endif
  return found;
}

HostOps choose_host_ops(const std::string& wish, const InstructionTable& found) {
  const auto named = std::ranges::find(kInstructionSets, wish) - kInstructionSets.begin();
  const bool is_named = named < std::ssize(kInstructionSets);
  TAPER_VALIDATE(is_named || wish.empty(),
                 "TAPER_ISA is '" << wish << "' (choose "
                                  << join({kInstructionSets.begin(), kInstructionSets.end()})
                                  << ", or unset it)");
  TAPER_VALIDATE(!is_named || found[named].lack.empty(),
                 "TAPER_ISA is " << wish << " (" << found[named].lack
                                 << "); unset it, and the widest set that works is used");
  HostOps ops = kScalarOps;
#if defined(__x86_64__)
  const auto is_used = [&](std::int64_t set) { return set <= named && found[set].lack.empty(); };
  if (is_used(1)) ops = kAvx2Ops;
  if (is_used(2)) ops = kAvx512Ops;
  if (is_used(3)) {
    ops.name = kInstructionSets[3];
    ops.pairs = kAvx512Bf16PairOps;
  }
  if (is_used(4)) {
    ops.name = kInstructionSets[4];
    ops.tile_product = amx_product;
  }
#endif
  return ops;
}

const HostOps& host_ops() {
  return chosen().ops;
}

}  // namespace detail

HostInstructions host_instructions() {
  std::vector<std::string> refused;
  for (const detail::FoundInstructions& set : detail::chosen().found)
    if (set.is_there && !set.lack.empty()) refused.push_back(set.lack);
  return {detail::host_ops().name, join(refused)};
}

}  // namespace taper
