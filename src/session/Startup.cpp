// SPDX-License-Identifier: Apache-2.0
#include "session/Startup.hpp"

#include <mpi.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "comm/MpiCall.hpp"
#include "session/detail/ExitTimer.hpp"

namespace taper {
namespace {

int number_of(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? -1 : std::atoi(value);
}

// The variable by which a launcher says that it started several processes; empty if none does.
std::string sign_of_several(const Environment& environment) {
  for (const char* name :
       {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"})
    if (number_of(environment, name) > 1) return name;
  return number_of(environment, "PMI_RANK") > 0 ? "PMI_RANK" : "";
}

bool left_open = false;  // a session, by an exception

}  // namespace

MpiSession::MpiSession(int& argc, char**& argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // the write that exceeds `ulimit -f` reports it with its file
  int provided = 0;
  TAPER_MPI_CALL(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided));
  TAPER_MPI_CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  TAPER_MPI_CALL(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  TAPER_MPI_CALL(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  TAPER_MPI_CALL(MPI_Comm_size(MPI_COMM_WORLD, &ranks_));
  set_log_rank(rank_, ranks_);
  TAPER_VALIDATE(provided >= MPI_THREAD_FUNNELED, "this MPI library provides thread level "
                                                      << provided << ", MPI_THREAD_FUNNELED ("
                                                      << MPI_THREAD_FUNNELED
                                                      << ") is needed: use a threaded build");
  const std::string problem = lone_rank_problem(ranks_, process_environment);
  TAPER_VALIDATE(problem.empty(), problem);
  TAPER_MPI_CALL(MPI_Comm_dup(MPI_COMM_WORLD, &farewell_));
}

MpiSession::~MpiSession() {
  if (std::uncaught_exceptions() > 0) {
    left_open = true;
    return;
  }
  if (progress_ != nullptr) progress_->enter_collective("MPI_Finalize", 0, ranks_);
  std::fflush(nullptr);
  // All ranks have come this far before the time runs. On a communicator of its own: a rank that
  // skipped a collective must not meet one that still waits in it.
  try {
    TAPER_MPI_CALL(MPI_Barrier(farewell_));
  } catch (const Error& error) {
    TAPER_ERROR(error.what());
  }
  MPI_Comm_free(&farewell_);
  {
    const detail::ExitTimer timer(kFinalizeSeconds, exit_code_);
    MPI_Finalize();
  }
  if (progress_ != nullptr) progress_->leave_collective();
}

void finalize_alone(ExitCode code) {
  if (!std::exchange(left_open, false) || code == ExitCode::kFailure) return;
  const detail::ExitTimer timer(MpiSession::kFinalizeSeconds, static_cast<int>(code));
  MPI_Finalize();
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

const char* process_environment(const char* name) {
  return std::getenv(name);
}

std::string lone_rank_problem(int mpi_ranks, const Environment& environment) {
  if (mpi_ranks > 1) return {};
  // A launcher that speaks our MPI's protocol and says "one" is right; only the batch job around it
  // is larger.
  if (number_of(environment, "PMI_SIZE") == 1) return {};
  const std::string sign = sign_of_several(environment);
  if (sign.empty()) return {};
  return sign + "=" + environment(sign.c_str()) +
         " says that this process is one of several, but MPI sees it alone (it was started by the "
         "launcher of another MPI, or without a launcher): use srun --mpi=pmi2, or the mpiexec of "
         "the MPI with which Taper was built (mpiexec -n 1 for a single process)";
}

bool is_one_of_several(const Environment& environment) {
  if (number_of(environment, "PMI_SIZE") == 1) return false;
  const std::string sign = sign_of_several(environment);
  return !sign.empty() && sign != "SLURM_NTASKS";
}

}  // namespace taper
