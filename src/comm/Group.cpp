// SPDX-License-Identifier: Apache-2.0
#include "comm/Group.hpp"

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include "base/Error.hpp"
#include "comm/MpiCall.hpp"

namespace taper {
namespace {

std::vector<int> first_ranks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

Group::Group(std::vector<int> world_ranks, int rank, MPI_Comm comm, bool owned,
             const GroupOptions& options)
    : world_ranks_(std::move(world_ranks)),
      rank_(rank),
      comm_(comm),
      owned_(owned),
      options_(options) {}

Group Group::self(int world_rank) {
  GroupOptions options;
  options.wait = WaitMode::kBlock;
  return Group({world_rank}, 0, MPI_COMM_SELF, false, options);
}

Group Group::world(MPI_Comm comm, const GroupOptions& options) {
  int size = 0, rank = 0;
  TAPER_MPI_CALL(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  TAPER_MPI_CALL(MPI_Comm_size(comm, &size));
  TAPER_MPI_CALL(MPI_Comm_rank(comm, &rank));
  GroupOptions resolved = options;
  resolved.wait = resolve_wait_mode(options.wait, comm);
  return Group(first_ranks(size), rank, comm, false, resolved);
}

Group Group::of_node(const Group& world) {
  MPI_Comm comm = MPI_COMM_NULL;
  int size = 0;
  TAPER_MPI_CALL(
      MPI_Comm_split_type(world.comm(), MPI_COMM_TYPE_SHARED, world.rank(), MPI_INFO_NULL, &comm));
  TAPER_MPI_CALL(MPI_Comm_size(comm, &size));
  std::vector<int> members(static_cast<std::size_t>(size));
  const int mine = world.rank();
  TAPER_MPI_CALL(MPI_Allgather(&mine, 1, MPI_INT, members.data(), 1, MPI_INT, comm));
  return owning(comm, std::move(members), world.options());
}

Group Group::block(MPI_Comm parent, int first, int size, const GroupOptions& options) {
  int rank = 0, all = 1, members = 1;
  MPI_Comm comm = MPI_COMM_SELF;
  TAPER_MPI_CALL(MPI_Comm_rank(parent, &rank));
  TAPER_MPI_CALL(MPI_Comm_size(parent, &all));
  if (all > 1) {
    TAPER_MPI_CALL(MPI_Comm_split(parent, first, rank, &comm));
    TAPER_MPI_CALL(MPI_Comm_size(comm, &members));
  }
  TAPER_INSIST(members == size && first <= rank && rank < first + size && first + size <= all,
               "rank " << rank << " of " << all << " gives the block of " << size
                       << " ranks from rank " << first << " as its own, as " << members
                       << " ranks do (each rank gives the block that it is in)");
  if (all == 1) return self();
  Group group = owning(comm, first_ranks(size), options);
  if (group.is_null()) return self();
  return group;
}

Group Group::owning(MPI_Comm comm, std::vector<int> world_ranks, const GroupOptions& options) {
  TAPER_EXPECT(options.wait != WaitMode::kAuto);
  int size = 0, rank = 0;
  TAPER_MPI_CALL(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  TAPER_MPI_CALL(MPI_Comm_size(comm, &size));
  TAPER_MPI_CALL(MPI_Comm_rank(comm, &rank));
  TAPER_INSIST(
      size == static_cast<int>(world_ranks.size()),
      "a communicator of " << size << " ranks given for a group of " << world_ranks.size());
  return Group(std::move(world_ranks), rank, comm, true, options);
}

Group::Group(Group&& other) noexcept {
  *this = std::move(other);
}

Group& Group::operator=(Group&& other) noexcept {
  if (this == &other) return *this;
  free();
  world_ranks_ = std::move(other.world_ranks_);
  rank_ = other.rank_;
  comm_ = std::exchange(other.comm_, MPI_COMM_SELF);
  owned_ = std::exchange(other.owned_, false);
  options_ = other.options_;
#if defined(TAPER_CUDA)
  devices_ = std::move(other.devices_);
  windows_ = std::move(other.windows_);
#endif
  number_ = other.number_;
  return *this;
}

Group::~Group() {
  free();
}

// Freeing a communicator may wait for the other ranks. While an exception flies they will not come
// (the run ends in MPI_Abort, Guard.hpp), and after MPI_Finalize there is nothing left to free.
void Group::free() {
  if (!std::exchange(owned_, false) || std::uncaught_exceptions() > 0) return;
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0) MPI_Comm_free(&comm_);
}

int index_of(const std::vector<int>& ranks, int rank) {
  if (ranks.empty()) return -1;
  // The world and blocks of ranks are consecutive.
  if (const int guess = rank - ranks.front();
      guess >= 0 && guess < std::ssize(ranks) && ranks[static_cast<std::size_t>(guess)] == rank)
    return guess;
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

}  // namespace taper
