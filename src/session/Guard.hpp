// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace taper {

// Runs a program's body and returns its exit code. An exception that escapes is logged with its
// rank; an Error that all ranks throw with the same text is logged by rank 0 only
// (SharedError.hpp). If there are other ranks, MPI_Abort then ends them with the code of the Error
// (1 for other exceptions), since they would wait for this one for ever. For the same reason the
// destructors of groups and of the session wait for nobody while an exception unwinds the stack. A
// lone rank finalizes MPI instead (finalize_alone() of Startup.hpp).
int run_guarded(const std::function<int()>& body);

}  // namespace taper
