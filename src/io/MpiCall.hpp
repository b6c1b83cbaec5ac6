// SPDX-License-Identifier: Apache-2.0
//
// The few MPI calls of this module and of `results`, on the raw communicator they are given: files
// are written together, and all ranks must succeed or fail together. comm/MpiCall.hpp has a wrapper
// of its own: the only module that both may include is `base`, which needs no more than the
// standard library, and comm on top of io would need HDF5 for every group of ranks.
#pragma once

#include <mpi.h>

#include <string>

#include "base/Error.hpp"

// Makes one MPI call and throws Error with the name of the function, MPI's own text and the rank
// if it fails and the communicator returns errors.
#define TAPER_IO_MPI_CALL(expression)                                     \
  do {                                                                    \
    const int taper_code_ = (expression);                                 \
    if (taper_code_ != MPI_SUCCESS)                                       \
      ::taper::detail::throw_mpi_error_of_file(#expression, taper_code_); \
  } while (false)

namespace taper::detail {

[[noreturn]] void throw_mpi_error_of_file(const char* call, int code);

int comm_rank(MPI_Comm comm);
int comm_size(MPI_Comm comm);

// Collective over comm. If any rank brings a problem, all ranks throw Error with the text and
// the code of the lowest such rank.
void throw_together(MPI_Comm comm, const std::string& problem, ExitCode code = ExitCode::kFailure);

// Collective over comm. Runs action on every rank; if it throws on any, all throw. The action must
// not be collective itself, or must fail on all ranks.
template <class Action>
void do_together(MPI_Comm comm, Action&& action) {
  std::string problem;
  ExitCode code = ExitCode::kFailure;
  try {
    action();
  } catch (const std::exception& error) {
    problem = describe(error);
    if (problem.empty()) problem = "unknown error";
    if (const auto* ours = dynamic_cast<const Error*>(&error)) code = ours->code();
  }
  throw_together(comm, problem, code);
}

}  // namespace taper::detail
