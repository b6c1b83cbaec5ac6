// SPDX-License-Identifier: Apache-2.0
#include "session/SharedError.hpp"

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/Log.hpp"
#include "base/Text.hpp"
#include "base/Timer.hpp"
#include "comm/MpiCall.hpp"
#include "session/Startup.hpp"
#include "session/detail/ExitTimer.hpp"

namespace taper {
namespace {

constexpr int kTag = 7011;  // of no other message on MPI_COMM_WORLD
constexpr double kPatience = 0.7;
constexpr double kMpiHangs = 20.0;
constexpr std::chrono::milliseconds kPause{5};

struct World {
  int rank = 0;
  int size = 1;
};

// A world of one if there is no MPI to speak through.
World find_world() {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  World world;
  if (finalized != 0) return world;
  if (initialized == 0) {
    if (!is_one_of_several(process_environment)) return world;
    int provided = 0;
    TAPER_MPI_CALL(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
  }
  TAPER_MPI_CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  TAPER_MPI_CALL(MPI_Comm_rank(MPI_COMM_WORLD, &world.rank));
  TAPER_MPI_CALL(MPI_Comm_size(MPI_COMM_WORLD, &world.size));
  set_log_rank(world.rank, world.size);
  return world;
}

// The messages are eager, and nobody waits for them: the job ends anyway.
void tell_others(const World& world, std::uint64_t hash) {
  static std::uint64_t sent = 0;  // must outlive the requests
  sent = hash;
  std::vector<MPI_Request> requests(world.size, MPI_REQUEST_NULL);
  for (int rank = 1; rank < world.size; ++rank)
    TAPER_MPI_CALL(MPI_Isend(&sent, 1, MPI_UINT64_T, rank, kTag, MPI_COMM_WORLD, &requests[rank]));
  int done = 0;  // gives the library a chance to send
  TAPER_MPI_CALL(MPI_Testall(world.size, requests.data(), &done, MPI_STATUSES_IGNORE));
}

bool hear_rank_0(std::uint64_t hash) {
  for (const Timer timer; timer.seconds() < kPatience; std::this_thread::sleep_for(kPause)) {
    int arrived = 0;
    TAPER_MPI_CALL(MPI_Iprobe(0, kTag, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE));
    if (arrived == 0) continue;
    std::uint64_t said = 0;
    TAPER_MPI_CALL(MPI_Recv(&said, 1, MPI_UINT64_T, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return said == hash;
  }
  return false;
}

}  // namespace

bool is_said_by_rank_0(const std::string& text, ExitCode code) {
  const detail::ExitTimer timer(kMpiHangs, static_cast<int>(code), [&] { TAPER_ERROR(text); });
  try {
    const World world = find_world();
    if (world.size == 1) return false;
    if (world.rank != 0) return hear_rank_0(fnv1a(text));
    tell_others(world, fnv1a(text));
  } catch (const Error&) {  // of MPI; the text is what matters
  }
  return false;
}

}  // namespace taper
