// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <functional>
#include <string>

#include "base/Error.hpp"
#include "comm/Progress.hpp"

namespace taper {

// MPI for the life of this object. First thing in a program, last to go.
class MpiSession {
 public:
  // MPI_Init_thread with MPI_THREAD_FUNNELED: only the main thread communicates. Throws Error if
  // the library gives less, or if this process was meant to be one of several but MPI sees it
  // alone. Sets the rank of the log; MPI_COMM_WORLD returns errors from here on.
  MpiSession(int& argc, char**& argv);
  // Waits for all ranks and finalizes, unless an exception is on its way: the others would not come
  // (see Guard.hpp). The results are safe by then, so if MPI_Finalize hangs (MPICH 4.0 with UCX
  // over TCP does in some runs) the process leaves with the exit code after `kFinalizeSeconds`.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // Told of the wait in MPI_Finalize, so that a watchdog covers it. Must outlive the session.
  void watch(Progress& progress) { progress_ = &progress; }

  // What the program will return, for a process that cannot get out of MPI_Finalize; 0 otherwise.
  void set_exit_code(int code) { exit_code_ = code; }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  static constexpr double kFinalizeSeconds = 5.0;

 private:
  Progress* progress_ = nullptr;
  MPI_Comm farewell_ = MPI_COMM_NULL;
  int rank_ = 0;
  int ranks_ = 1;
  int exit_code_ = 0;
};

// To be called by a lone rank that ends with an error, after it has been told: finalizes MPI if a
// session was left by an exception. When a process ends without that, MPICH's launcher sometimes
// replaces its exit code by 1. With that code nothing is done: the HDF5 library, which closes its
// files at that moment, fails where one could not be written.
void finalize_alone(ExitCode code);

// Name and version of the MPI library, e.g. "MPICH 4.0.2".
std::string mpi_library();

// Reads an environment variable; null if it is not set.
using Environment = std::function<const char*(const char*)>;

// That of this process.
const char* process_environment(const char* name);

// Why a process alone in its MPI world was probably started as one of several by a launcher of
// another MPI, with the remedy; empty if nothing hints at it.
std::string lone_rank_problem(int mpi_ranks, const Environment& environment);

// Whether a launcher says that it started this process as one of several. SLURM_NTASKS is no such
// sign: batch scripts, which start nothing but themselves, have it as well.
bool is_one_of_several(const Environment& environment);

}  // namespace taper
