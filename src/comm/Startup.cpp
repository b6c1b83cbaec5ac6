// SPDX-License-Identifier: Apache-2.0
#include "comm/Startup.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <exception>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "comm/MpiCall.hpp"

namespace taper {

MpiSession::MpiSession(int& argc, char**& argv) {
  int provided = 0;
  TAPER_MPI_CALL(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided));
  TAPER_MPI_CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  TAPER_MPI_CALL(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  TAPER_MPI_CALL(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  TAPER_MPI_CALL(MPI_Comm_size(MPI_COMM_WORLD, &ranks_));
  set_log_rank(rank_, ranks_);
  TAPER_VALIDATE(provided >= MPI_THREAD_FUNNELED, "this MPI library gives thread level "
                                                      << provided << ", MPI_THREAD_FUNNELED ("
                                                      << MPI_THREAD_FUNNELED
                                                      << ") is needed: use a threaded build");
  const std::string problem =
      lone_rank_problem(ranks_, [](const char* name) -> const char* { return std::getenv(name); });
  TAPER_VALIDATE(problem.empty(), problem);
}

MpiSession::~MpiSession() {
  if (std::uncaught_exceptions() > 0) return;
  if (progress_ != nullptr) progress_->enter_collective("MPI_Finalize", 0, ranks_);
  MPI_Finalize();
  if (progress_ != nullptr) progress_->leave_collective();
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  TAPER_MPI_CALL(MPI_Get_library_version(text, &length));
  // "MPICH Version:\t4.0.2\n...", "Open MPI v4.1.4, package: ...": the first line without ornament.
  std::string line(text, static_cast<std::size_t>(length));
  line = line.substr(0, line.find_first_of("\n,"));
  if (const auto at = line.find(" Version:"); at != std::string::npos) line.erase(at, 9);
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line;
}

std::string lone_rank_problem(int mpi_ranks, const Environment& environment) {
  if (mpi_ranks > 1) return {};
  const auto number = [&](const char* name) {
    const char* value = environment(name);
    return value == nullptr ? -1 : std::atoi(value);
  };
  // A launcher that speaks our MPI's protocol and says "one" is right; only the batch job around it
  // is larger.
  if (number("PMI_SIZE") == 1) return {};
  std::string sign;
  for (const char* name :
       {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}) {
    if (sign.empty() && number(name) > 1) sign = name;
  }
  if (sign.empty() && number("PMI_RANK") > 0) sign = "PMI_RANK";
  if (sign.empty()) return {};
  return sign + "=" + environment(sign.c_str()) +
         " says that this process is one of several, but MPI sees it alone (it was started by the "
         "launcher of another MPI, or without one): use srun --mpi=pmi2, or the mpiexec of the MPI "
         "that Taper was built with (mpiexec -n 1 for a single process)";
}

}  // namespace taper
