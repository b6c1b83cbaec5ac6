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
using InstructionTable = std::array<FoundInstructions, kInstructionSets.size()>;
InstructionTable find_instructions();

// The widest set that can be used, up to the wish if that is not empty. Throws Error if the wish is
// no set, or cannot be used.
HostOps choose_host_ops(const std::string& wish, const InstructionTable& found);

}  // namespace taper::detail
