// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace taper {

// What an output directory has of iterations after `finished`, as people read it: "checkpoints/
// iter_000004; rollouts of iterations 3 to 8; metrics of iterations 3 to 8". Empty where there is
// nothing. A run that starts there removes it all: those iterations will come again. Reads only;
// for one rank.
std::string later_results(const std::filesystem::path& output, std::int64_t finished);

// Throws Error (kBadInput) where a directory without checkpoints has results that no run leaves
// which was killed before its first one: that run saved its first checkpoint after iteration
// `first_checkpoint` at the latest, and somebody removed it. To start afresh would remove the
// results unasked. Reads only; for one rank.
void require_no_lost_checkpoints(const std::filesystem::path& output,
                                 std::int64_t first_checkpoint);

}  // namespace taper
