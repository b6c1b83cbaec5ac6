// SPDX-License-Identifier: Apache-2.0
#include "comm/Wait.hpp"

#include <sched.h>

#include <numeric>
#include <vector>

#include "comm/Affinity.hpp"
#include "comm/MpiCall.hpp"

namespace taper {
namespace {

constexpr int kPollsBeforeYield = 50;

// The cores of the union of the affinity masks of all ranks on this host.
int cores_of_host(MPI_Comm host) {
  const std::vector<int> mine = affinity_cores();
  int count = mine.empty() ? 0 : mine.back() + 1;
  TAPER_MPI_CALL(MPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_INT, MPI_MAX, host));
  std::vector<int> allowed(static_cast<std::size_t>(count), 0);
  for (const int core : mine) allowed[core] = 1;
  TAPER_MPI_CALL(MPI_Allreduce(MPI_IN_PLACE, allowed.data(), count, MPI_INT, MPI_MAX, host));
  return std::accumulate(allowed.begin(), allowed.end(), 0);
}

}  // namespace

void yield_until_done(std::span<MPI_Request> requests) {
  int done = 0;
  for (int polls = 0; done == 0; ++polls) {
    TAPER_MPI_CALL(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done,
                               MPI_STATUSES_IGNORE));
    if (done == 0 && polls >= kPollsBeforeYield) sched_yield();
  }
}

WaitMode resolve_wait_mode(WaitMode wanted, MPI_Comm comm) {
  if (wanted != WaitMode::kAuto) return wanted;
  MPI_Comm host = MPI_COMM_NULL;
  TAPER_MPI_CALL(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
  int ranks = 1;
  TAPER_MPI_CALL(MPI_Comm_size(host, &ranks));
  int must_yield = is_oversubscribed(ranks, cores_of_host(host)) ? 1 : 0;
  TAPER_MPI_CALL(MPI_Comm_free(&host));
  TAPER_MPI_CALL(MPI_Allreduce(MPI_IN_PLACE, &must_yield, 1, MPI_INT, MPI_MAX, comm));
  return must_yield != 0 ? WaitMode::kYield : WaitMode::kBlock;
}

}  // namespace taper
