// SPDX-License-Identifier: Apache-2.0
//
// The instructions that kernels on the host use. All sets give the same bits.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace taper {

// From narrow to wide: kAvx512Bf16 is kAvx512 with its dot products, kAmx that with its tiles.
enum class InstructionSet { kScalar, kAvx2, kAvx512, kAvx512Bf16, kAmx };
inline constexpr std::array kInstructionSetNames{"scalar", "avx2", "avx512", "avx512bf16", "amx"};
constexpr const char* to_string(InstructionSet set) {
  return kInstructionSetNames[static_cast<std::size_t>(set)];
}

struct HostInstructions {
  InstructionSet widest = InstructionSet::kScalar;  // in use
  std::string refused;  // why units that the processor has are not used; empty: they are
};

// The widest set that this processor has, the system permits and a comparison at the start has
// found to give the bits of its arithmetic, up to TAPER_ISA if that is in the environment. Throws
// Error if TAPER_ISA is no set, or one that cannot be used.
HostInstructions host_instructions();

}  // namespace taper
