// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <span>

namespace taper {

// How a rank waits inside a collective. With more ranks on a node than cores a blocking MPI call
// spins on a core that the awaited rank needs (a 2 KB all-gather of four ranks on two cores: 5 ms
// blocking, 33 us yielding).
enum class WaitMode {
  kAuto,   // decided at start: kYield if any node has more ranks than cores, else kBlock
  kBlock,  // blocking MPI calls
  kYield,  // non-blocking calls; after a few polls the core is given away between polls
};

// Returns when all requests are complete, polling and yielding. Throws Error if a request
// failed.
void yield_until_done(std::span<MPI_Request> requests);

// kAuto resolved to the same answer on every rank; any other mode is returned as it is.
// Collective over `comm`, which must span all ranks of the run (ranks of other groups take cores
// too).
WaitMode resolve_wait_mode(WaitMode wanted, MPI_Comm comm);

// Whether `ranks` processes whose affinity masks have `cores` distinct cores in total must share
// cores.
constexpr bool is_oversubscribed(int ranks, int cores) {
  return ranks > cores;
}

}  // namespace taper
