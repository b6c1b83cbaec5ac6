// SPDX-License-Identifier: Apache-2.0
//
// How many threads each rank computes with. A launcher that binds nothing lets every rank run on
// all cores of its host; an OpenMP library that is told nothing then starts as many threads in
// every rank, which wait for each other by spinning on cores that the others need.
#pragma once

#include <string>
#include <vector>

#include "session/HostMap.hpp"
#include "session/Startup.hpp"

namespace taper {

struct ThreadChoice {
  int cores = 1;        // that the rank may run on
  int ranks = 1;        // of its host that may run on any of them, itself included
  int room = 1;         // threads that leave every rank its part of the cores; at least 1
  std::string setting;  // the variable by which the user has chosen; empty: Taper chooses

  // What to start with; 0: as the user's setting says.
  int threads() const { return setting.empty() ? room : 0; }
};

// The choice of one rank. `host_map` must have been gathered before Kokkos started, which may bind
// the thread that asks. The variables that count: KOKKOS_NUM_THREADS, then OMP_NUM_THREADS.
// Throws Error if one of them is set to anything but a number.
ThreadChoice choose_threads(const HostMap& host_map, int rank, const Environment& environment);

// "1 thread per rank (chosen: 2 cores / 2 ranks)" or "4 threads per rank (OMP_NUM_THREADS)", as
// rank 0 has it; "1 to 4 threads per rank" if ranks differ. `threads`: of all ranks, in rank
// order.
std::string to_string(const ThreadChoice& choice, const std::vector<int>& threads);

// Ranks whose threads are more than the room that choose_threads() finds, one text per host.
// `threads` as above.
std::vector<std::string> thread_warnings(const HostMap& host_map, const std::vector<int>& threads);

}  // namespace taper
