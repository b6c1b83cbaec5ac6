// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace taper {

// Runs a program's body and returns its exit code. An exception that escapes is logged with its
// rank, an Error that rank 0 ends with, too, by that rank alone (SharedError.hpp); where other
// ranks exist they are ended by MPI_Abort with the code of the Error (1 for other exceptions),
// since they would wait for this one for ever. Destructors of groups and of the session know that
// and wait for nobody while unwinding.
int run_guarded(const std::function<int()>& body);

}  // namespace taper
