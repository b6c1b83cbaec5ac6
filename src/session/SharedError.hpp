// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/Error.hpp"

namespace taper {

// Bad input mostly fails on every rank with one text, which people want to read once. Called by
// each rank that is about to end the job, before it prints why: rank 0 tells the others its text
// and returns false; another rank returns whether rank 0 says the same, for which it waits a
// moment, so that a rank that fails alone or otherwise is never silenced. Starts MPI where a
// launcher started this process as one of several and no rank has come that far. Waits for nobody
// else and throws nothing; where MPI itself hangs, prints `text` and ends the process with `code`.
bool is_said_by_rank_0(const std::string& text, ExitCode code);

}  // namespace taper
