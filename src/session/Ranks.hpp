// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "base/Packing.hpp"
#include "comm/Group.hpp"
#include "comm/GroupCache.hpp"
#include "comm/Progress.hpp"
#include "kernels/Views.hpp"
#include "session/HostMap.hpp"
#include "shard/RankGrid.hpp"

namespace taper {

// The ranks that a model runs on, all of the job or a block of them: progress for the watchdog, the
// groups of all layouts, the execution space, and where the ranks are. Code that is given a Ranks
// treats it as the world: it numbers these ranks from 0 and knows no others, and "collective over
// the world" means over these.
struct Ranks {
  // `size`: the ranks of comm (MPI_COMM_WORLD). Kokkos must have started, which may bind threads.
  // Collective over comm.
  Ranks(MPI_Comm comm, int size, const std::vector<int>& tp_degrees, Progress& progress);

  // The ranks [first, first + size) of these, with groups of their own for all the given degrees.
  // Blocks share only the progress and the execution space of the process, so each may do something
  // else. If the GPUs of these ranks are connected, those of each block are, too. Every rank passes
  // the block that it is in; blocks may differ in size and degrees. Throws Error if the degrees do
  // not fit the size, or if ranks disagree about a block, or if NCCL fails. Collective over these
  // ranks, then over the block.
  Ranks block(int first, int size, const std::vector<int>& tp_degrees) const;

  int rank() const { return groups.world().rank(); }
  int size() const { return groups.world().size(); }
  const Group& world() const { return groups.world(); }
#if defined(TAPER_CUDA)
  // Lets GPUs exchange data through NCCL, if each rank has one of its own and all can load it, and
  // small sums through one another's memory, where a host has all GPUs of a group.
  // Returns what is used, for the log. Throws Error if NCCL fails. Collective over the world.
  std::string connect_devices();
#endif

  // How many of these are on the host of this rank, itself included.
  int ranks_on_host() const {
    return hosts.ranks_on_host(rank());
  }

  Progress& progress;
  DivisorChain chain;
  GroupCache groups;
  Exec exec;
  HostMap hosts;

 private:
  Ranks(const Ranks& parent, const DivisorChain& chain, GroupCache groups, HostMap hosts);
};

namespace detail {
// Collective over the world.
std::string bytes_from_rank_0(const Ranks& ranks, const std::function<std::string()>& make);
}  // namespace detail

// Calls `make` on rank 0 and returns its value, of any type that base/Packing.hpp knows, on every
// rank. If it throws, every rank throws an Error: with the code of an Error, with kBadInput for an
// error of std::filesystem (a path that cannot be read or is too long), with kFailure otherwise.
// For things that only one rank should look at or touch, such as files that others might see in
// another state. Collective over the world.
template <class Make>
auto from_rank_0(const Ranks& ranks, const Make& make) {
  return unpacked<std::invoke_result_t<const Make&>>(
      detail::bytes_from_rank_0(ranks, [&] { return packed(make()); }));
}

// Likewise for what is only done or checked. Collective over the world.
template <class Check>
void on_rank_0(const Ranks& ranks, const Check& check) {
  detail::bytes_from_rank_0(ranks, [&] {
    check();
    return std::string();
  });
}

// How the job is spread, as this rank sees it: ranks, ranks_per_host, threads_per_rank.
std::map<std::string, std::string> job_facts(const Ranks& ranks);
// The same, the instructions that kernels on the host use and, where they compute on GPUs, that of
// this rank.
std::map<std::string, std::string> run_facts(const Ranks& ranks);

// Throws Error on every rank if `text` differs between ranks; `what` names it. Collective over the
// world.
void require_equal(const Ranks& ranks, const std::string& what, const std::string& text);

}  // namespace taper
