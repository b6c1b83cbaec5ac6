// SPDX-License-Identifier: Apache-2.0
#include "io/MpiCall.hpp"

#include "base/Log.hpp"

namespace taper::detail {

void throw_mpi_error_of_file(const char* call, int code) {
  const std::string text(call);
  char reason[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(code, reason, &length) != MPI_SUCCESS) length = 0;
  TAPER_FAIL(ExitCode::kFailure, "a file cannot be written together ("
                                     << text.substr(0, text.find('(')) << " failed on rank "
                                     << log_rank() << ": " << std::string(reason, reason + length)
                                     << ", code " << code << ")");
}

int comm_rank(MPI_Comm comm) {
  int rank = 0;
  TAPER_IO_MPI_CALL(MPI_Comm_rank(comm, &rank));
  return rank;
}

int comm_size(MPI_Comm comm) {
  int size = 0;
  TAPER_IO_MPI_CALL(MPI_Comm_size(comm, &size));
  return size;
}

void throw_together(MPI_Comm comm, const std::string& problem, ExitCode code) {
  const int ranks = comm_size(comm);
  int mine = problem.empty() ? ranks : comm_rank(comm);
  int first = ranks;
  TAPER_IO_MPI_CALL(MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm));
  if (first == ranks) return;
  std::string text = problem;
  int head[] = {static_cast<int>(text.size()), static_cast<int>(code)};
  TAPER_IO_MPI_CALL(MPI_Bcast(head, 2, MPI_INT, first, comm));
  text.resize(static_cast<std::size_t>(head[0]));
  TAPER_IO_MPI_CALL(MPI_Bcast(text.data(), head[0], MPI_CHAR, first, comm));
  throw Error(static_cast<ExitCode>(head[1]), text + " (rank " + std::to_string(first) + ")");
}

}  // namespace taper::detail
