// SPDX-License-Identifier: Apache-2.0
#include "session/Guard.hpp"

#include <mpi.h>

#include <chrono>
#include <exception>
#include <thread>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "session/SharedError.hpp"
#include "session/Startup.hpp"

namespace taper {
namespace {

constexpr std::chrono::milliseconds kTimeToBeRead{300};

int end_all_ranks(ExitCode code) {
  int initialized = 0, finalized = 0, ranks = 1;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized != 0 && finalized == 0) {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    // The launcher ends everybody at once and drops what it has not yet read of their output.
    if (ranks > 1 || is_one_of_several(process_environment))
      std::this_thread::sleep_for(kTimeToBeRead);
    if (ranks > 1) MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code));
    finalize_alone(code);
  }
  return static_cast<int>(code);
}

}  // namespace

int run_guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (!is_said_by_rank_0(error.what(), error.code())) TAPER_ERROR(error.what());
    return end_all_ranks(error.code());
  } catch (const std::exception& error) {
    TAPER_ERROR(describe(error));
  } catch (...) {
    TAPER_ERROR("an exception of unknown type");
  }
  return end_all_ranks(ExitCode::kFailure);
}

}  // namespace taper
