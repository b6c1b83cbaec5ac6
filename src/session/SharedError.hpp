// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/Error.hpp"

namespace taper {

// Bad input mostly fails on every rank with the same text, which people want to read once. Each
// rank that is about to end the job calls this before it prints why. Rank 0 sends its text (as a
// hash) to the others and returns false. Another rank waits for it for less than a second and
// returns whether both texts are the same, so a rank that fails alone, or for another reason, is
// never silenced. Starts MPI if a launcher started this process as one of several and MPI does not
// run yet. Not collective; throws nothing. If MPI itself hangs, prints `text` and ends the process
// with `code`.
bool is_said_by_rank_0(const std::string& text, ExitCode code);

}  // namespace taper
