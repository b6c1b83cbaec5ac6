// SPDX-License-Identifier: Apache-2.0
#include "comm/MpiCall.hpp"

#include <string>

#include "base/Error.hpp"
#include "base/Log.hpp"

namespace taper::detail {

void throw_mpi_error(const char* call, int code, const char* file, int line) {
  const std::string text(call);
  char reason[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(code, reason, &length) != MPI_SUCCESS) length = 0;
  TAPER_FAIL(ExitCode::kFailure, text.substr(0, text.find('('))
                                     << " failed on rank " << log_rank() << ": "
                                     << std::string(reason, static_cast<std::size_t>(length))
                                     << " (code " << code << ", " << file << ":" << line << ")");
}

}  // namespace taper::detail
