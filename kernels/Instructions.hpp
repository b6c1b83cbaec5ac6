// SPDX-License-Identifier: Apache-2.0
//
// The instructions that kernels on the host use. All sets give the same bits.
#pragma once

#include <array>
#include <string>

namespace taper {

// From narrow to wide: avx512bf16 is avx512 with its dot products, amx that with its tiles.
inline constexpr std::array kInstructionSets{"scalar", "avx2", "avx512", "avx512bf16", "amx"};

struct HostInstructions {
  std::string name;     // the widest set in use
  std::string refused;  // why units that the processor has are not used; empty: they are
};

// The widest set that this processor has, the system permits and a comparison at the start has
// found to give the bits of its arithmetic, up to TAPER_ISA if that is in the environment. Throws
// Error if TAPER_ISA is no set, or one that cannot be used.
HostInstructions host_instructions();

}  // namespace taper
