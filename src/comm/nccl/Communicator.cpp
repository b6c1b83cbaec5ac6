// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/Communicator.hpp"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <exception>
#include <span>
#include <sstream>

#include "base/CudaCall.hpp"
#include "base/Error.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "comm/Progress.hpp"
#include "comm/nccl/Library.hpp"

namespace taper::nccl {
namespace {

// Tells the watchdog, if there is one.
std::unique_ptr<LibraryWait> wait_for(const char* call, Progress* progress, int ranks) {
  return progress == nullptr ? nullptr : std::make_unique<LibraryWait>(*progress, call, ranks);
}

// Throws Error unless `comm` is what `call` was asked for.
void require_place(ncclComm_t comm, int ranks, int rank, const char* call) {
  int has = 0, is = 0;
  require(library().count(comm, &has), "ncclCommCount");
  require(library().user_rank(comm, &is), "ncclCommUserRank");
  if (has != ranks || is != rank)
    TAPER_FAIL(ExitCode::kFailure, call << " made this rank number " << is << " of " << has
                                        << " where it is number " << rank << " of " << ranks
                                        << ": ranks disagree about their groups, or NCCL is at "
                                           "fault (NCCL_DEBUG=INFO in the environment says more)");
}

}  // namespace

std::string version() {
  return version_text(library().version);
}

std::string problem(const Group& world) {
  const auto problems = all_gather_string(world, library().problem);
  const auto versions = all_gather_string(world, version());
  for (std::size_t r = 0; r < problems.size(); ++r) {
    if (!problems[r].empty()) return "rank " + std::to_string(r) + ": " + problems[r];
    if (versions[r] != versions[0])
      return "rank 0 has NCCL " + versions[0] + ", rank " + std::to_string(r) + " " + versions[r];
  }
  return "";
}

std::shared_ptr<Communicator> Communicator::create(const Group& world) {
  // Connect all that operations of any size need at once, not when one is first used.
  ::setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  ncclUniqueId id{};
  if (world.rank() == 0) require(library().get_unique_id(&id), "ncclGetUniqueId");
  broadcast(world, std::span(reinterpret_cast<std::uint8_t*>(&id), sizeof id), 0);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = 1;  // those that are split off use its resources
  ncclComm_t comm = nullptr;
  const auto wait = wait_for("ncclCommInitRank", world.progress(), world.size());
  require(library().init_rank(&comm, world.size(), id, world.rank(), &config), "ncclCommInitRank");
  require_place(comm, world.size(), world.rank(), "ncclCommInitRank");
  return std::shared_ptr<Communicator>(new Communicator(comm, world.progress()));
}

std::shared_ptr<const Communicator> Communicator::split(int color, int key, int ranks) const {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = 1;
  ncclComm_t part = nullptr;
  int all = 0;
  require(library().count(comm_, &all), "ncclCommCount");
  const auto wait = wait_for("ncclCommSplit", progress_, all);
  require(library().split(comm_, color == kNone ? NCCL_SPLIT_NOCOLOR : color, key, &part, &config),
          "ncclCommSplit");
  if (part == nullptr) return nullptr;
  require_place(part, ranks, key, "ncclCommSplit");
  return std::shared_ptr<const Communicator>(new Communicator(part, progress_));
}

Communicator::Communicator(ncclComm* comm, Progress* progress) : comm_(comm), progress_(progress) {
  require_cuda(cudaEventCreateWithFlags(&last_, cudaEventDisableTiming), "cudaEventCreate");
  if (progress_ != nullptr)
    progress_->watch(
        this, [this](double hang_seconds) { return problem(hang_seconds); },
        [this] { library().abort(comm_); });
}

// While an exception flies the other ranks will not come.
Communicator::~Communicator() {
  if (progress_ != nullptr) progress_->unwatch(this);
  if (std::uncaught_exceptions() > 0) return;
  library().destroy(comm_);
  cudaEventDestroy(last_);
}

void Communicator::mark(CUstream_st* stream) const {
  // An event of a recording cannot be asked for; an exchange outside of it follows in each step.
  cudaStreamCaptureStatus recording = cudaStreamCaptureStatusNone;
  require_cuda(cudaStreamIsCapturing(stream, &recording), "cudaStreamIsCapturing");
  if (recording != cudaStreamCaptureStatusNone) return;
  const std::lock_guard lock(mutex_);
  require_cuda(cudaEventRecord(last_, stream), "cudaEventRecord");
  queued_ns_ = now_ns();
}

std::string Communicator::problem(double hang_seconds) const {
  const std::lock_guard lock(mutex_);
  ncclResult_t state = ncclSuccess;
  if (const ncclResult_t asked = library().get_async_error(comm_, &state); asked != ncclSuccess)
    state = asked;
  if (state != ncclSuccess && state != ncclInProgress)
    return std::string("NCCL reports: ") + library().get_error_string(state);
  const double seconds = 1e-9 * static_cast<double>(now_ns() - queued_ns_);
  if (queued_ns_ < 0 || seconds < hang_seconds || cudaEventQuery(last_) != cudaErrorNotReady)
    return "";
  std::ostringstream text;
  text << "an exchange between GPUs has not ended for " << seconds << " s";
  return text.str();
}

}  // namespace taper::nccl
