// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

namespace taper::detail {

[[noreturn]] void throw_mpi_error(const char* call, int code, const char* file, int line);

}  // namespace taper::detail

// Makes one MPI call and throws Error with the name of the function, MPI's own text and the rank
// if it fails. The communicators of Taper's groups return errors instead of aborting, so that
// the message reaches the log. Modules below use TAPER_IO_MPI_CALL (io/MpiCall.hpp, which says
// why).
#define TAPER_MPI_CALL(...)                                                                \
  do {                                                                                     \
    const int taper_mpi_code_ = (__VA_ARGS__);                                             \
    if (taper_mpi_code_ != MPI_SUCCESS)                                                    \
      ::taper::detail::throw_mpi_error(#__VA_ARGS__, taper_mpi_code_, __FILE__, __LINE__); \
  } while (false)
