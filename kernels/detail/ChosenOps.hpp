// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

#include "kernels/Instructions.hpp"
#include "kernels/detail/HostOps.hpp"

namespace taper::detail {

// Whether the processor has a set of instructions, and why it cannot be used; empty: it can.
struct FoundInstructions {
  bool is_there = false;
  std::string lack;
};
using InstructionTable = std::array<FoundInstructions, kInstructionSetNames.size()>;

// The set of that name (a value of TAPER_ISA), the widest if it is empty. Throws Error if there is
// none.
InstructionSet instruction_set(const std::string& name);

// Looks for sets up to `most`; units beyond it are not touched.
InstructionTable find_instructions(InstructionSet most);

// The widest set that can be used, up to the wish if that is not empty. Throws Error if the wish is
// no set, or cannot be used.
HostOps choose_host_ops(const std::string& wish, const InstructionTable& found);

}  // namespace taper::detail
