// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <map>
#include <string>
#include <vector>

#include "comm/Group.hpp"
#include "shard/RankGrid.hpp"

namespace taper {

// All groups that a run will ever use, created once, by all ranks of `parent`, in one order that is
// written down in the lists; destroyed only with the cache. A change of layout then creates nothing
// and cannot deadlock.
class GroupCache {
 public:
  using RankLists = std::vector<std::vector<int>>;

  // Every rank passes the same lists of ranks of `parent`; list order is rank order in the group.
  // Repeated lists make one group, lists of one rank make null groups. Disjoint lists are created
  // together in one round. The group of all ranks in order is always there. MPI_COMM_NULL stands
  // for a run of one process without MPI. Collective over `parent`.
  GroupCache(MPI_Comm parent, RankLists rank_lists, const GroupOptions& options = {});

  // The tensor-parallel groups of every degree of the chain (ranks in shard order) and for each
  // degree the groups that hold the same shard in all replicas (ranks in replica order). The chain
  // must cover all ranks of `parent`. Collective over `parent`.
  static GroupCache for_chain(MPI_Comm parent, const DivisorChain& chain,
                              const GroupOptions& options = {});
  // The same on the ranks of `whole`, Group::block() as a rule, which the cache keeps as the group
  // of all ranks. Collective over `whole`.
  static GroupCache for_chain(Group whole, const DivisorChain& chain);

  GroupCache(GroupCache&&) = default;
  ~GroupCache();

#if defined(TAPER_CUDA)
  // Lets the GPUs of the ranks exchange data directly, each rank having one of its own: a
  // communicator of NCCL for every group, split off that of all ranks in the order of the groups
  // and warmed up, and windows for sums of tensor-parallel groups of few ranks on one host. `all`:
  // the communicator of all ranks. Why some of these groups have no windows is returned; empty if
  // all have. Once. Throws Error if NCCL fails. Collective over the world.
  std::string connect_devices(std::shared_ptr<const nccl::Communicator> all);
#endif

  const Group& world() const;
  // The group made from exactly this list. Throws Error if it was not in the lists or this rank
  // is no member.
  const Group& group(const std::vector<int>& ranks) const;
  bool has(const std::vector<int>& ranks) const {
    return groups_.contains(ranks);
  }

  // Only of for_chain(): this rank's tensor-parallel group and data-parallel group at a
  // tensor-parallel degree.
  const Group& tp_group(int degree) const;
  const Group& dp_group(int degree) const;

  // Communicators that this process holds (null groups hold none).
  int count() const;

 private:
  GroupCache(Group whole, RankLists rank_lists);

  std::map<std::vector<int>, Group> groups_;  // those that this rank is in
  std::map<int, const Group*> tp_groups_;
  std::map<int, const Group*> dp_groups_;
  std::vector<int> all_ranks_;
  std::vector<RankLists> rounds_;  // in which groups were created
};

// Rounds of disjoint lists, each list in the first round where it fits: the creation order of
// GroupCache.
std::vector<GroupCache::RankLists> creation_rounds(const GroupCache::RankLists& lists, int ranks);

// The lists of GroupCache::for_chain, the same on every rank.
GroupCache::RankLists tp_rank_lists(const DivisorChain& chain, int degree);
GroupCache::RankLists dp_rank_lists(const DivisorChain& chain, int degree);

}  // namespace taper
