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
    const char* set = std::getenv("TAPER_ISA");
    const std::string wish = set == nullptr ? "" : set;
    InstructionTable found = find_instructions(instruction_set(wish));
    HostOps ops = choose_host_ops(wish, found);
    return Chosen{std::move(found), ops};
  }();
  return once;
}

std::size_t place_of(InstructionSet set) {
  return static_cast<std::size_t>(set);
}

}  // namespace

InstructionSet instruction_set(const std::string& name) {
  if (name.empty()) return InstructionSet::kAmx;
  const auto at = std::ranges::find(kInstructionSetNames, name);
  TAPER_VALIDATE(
      at != kInstructionSetNames.end(),
      "TAPER_ISA is '" << name << "' (choose "
                       << join({kInstructionSetNames.begin(), kInstructionSetNames.end()})
                       << ", or unset it)");
  return static_cast<InstructionSet>(at - kInstructionSetNames.begin());
}

InstructionTable find_instructions([[maybe_unused]] InstructionSet most) {
  InstructionTable found;
  found.fill({false, "this processor has none, or this program was built for another one"});
  found[place_of(InstructionSet::kScalar)] = {true, ""};
#if defined(__x86_64__)
  const auto look = [&](InstructionSet set, const auto& find) {
    if (set <= most) found[place_of(set)] = find();
  };
  look(InstructionSet::kAvx2, [] {
    return FoundInstructions{has_avx2(), has_avx2() ? "" : "this processor has no AVX2 with FMA"};
  });
  look(InstructionSet::kAvx512, [] {
    return FoundInstructions{has_avx512(),
                             has_avx512() ? "" : "this processor has no AVX-512 (F, BW, DQ, VL)"};
  });
  look(InstructionSet::kAvx512Bf16, find_dot_products);
  look(InstructionSet::kAmx, find_tiles);
#endif
  return found;
}

HostOps choose_host_ops(const std::string& wish, const InstructionTable& found) {
  const InstructionSet most = instruction_set(wish);
  TAPER_VALIDATE(wish.empty() || found[place_of(most)].lack.empty(),
                 "TAPER_ISA is " << wish << " (" << found[place_of(most)].lack
                                 << "); unset it, and the widest set that works is used");
  HostOps ops = kScalarOps;
#if defined(__x86_64__)
  const auto is_used = [&](InstructionSet set) {
    return set <= most && found[place_of(set)].lack.empty();
  };
  if (is_used(InstructionSet::kAvx2)) ops = kAvx2Ops;
  if (is_used(InstructionSet::kAvx512)) ops = kAvx512Ops;
  if (is_used(InstructionSet::kAvx512Bf16)) {
    ops.set = InstructionSet::kAvx512Bf16;
    ops.pairs = kAvx512Bf16PairOps;
  }
  if (is_used(InstructionSet::kAmx)) {
    ops.set = InstructionSet::kAmx;
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
  return {detail::host_ops().set, join(refused)};
}

}  // namespace taper
