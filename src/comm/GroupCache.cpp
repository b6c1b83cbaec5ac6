// SPDX-License-Identifier: Apache-2.0
#include "comm/GroupCache.hpp"

#include <algorithm>
#include <set>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "comm/MpiCall.hpp"
#if defined(TAPER_CUDA)
#include "comm/Collectives.hpp"
#include "comm/nccl/Communicator.hpp"
#include "comm/nccl/Transport.hpp"
#include "comm/peers/Windows.hpp"
#endif

namespace taper {
namespace {

std::string list_text(const std::vector<int>& ranks) {
  return "{" + join(ranks, ",") + "}";
}

void validate_list(const std::vector<int>& list, int ranks) {
  const std::set<int> distinct(list.begin(), list.end());
  TAPER_INSIST(!list.empty() && distinct.size() == list.size() && *distinct.begin() >= 0 &&
                   *distinct.rbegin() < ranks,
               "group of ranks " << list_text(list)
                                 << " (a group is a list of different ranks below " << ranks
                                 << ")");
}

// The list of a round that a rank is in, -1 if it is in none, and its place in the list.
struct Place {
  int list = -1, key = 0;
};
Place place_in(const GroupCache::RankLists& round, int rank) {
  for (std::size_t i = 0; i < round.size(); ++i)
    if (const int at = index_of(round[i], rank); at >= 0) return {static_cast<int>(i), at};
  return {};
}

// The group of all ranks of `parent`, with a communicator of its own.
Group all_of(MPI_Comm parent, GroupOptions options) {
  if (parent == MPI_COMM_NULL) return Group::self();
  int ranks = 1;
  TAPER_MPI_CALL(MPI_Comm_size(parent, &ranks));
  options.wait = resolve_wait_mode(options.wait, parent);
  return Group::block(parent, 0, ranks, options);
}

}  // namespace

std::vector<GroupCache::RankLists> creation_rounds(const GroupCache::RankLists& lists, int ranks) {
  std::vector<GroupCache::RankLists> rounds;
  std::vector<std::vector<bool>> taken;  // per round, which ranks
  std::set<std::vector<int>> seen;
  for (const auto& list : lists) {
    validate_list(list, ranks);
    if (list.size() == 1 || !seen.insert(list).second) continue;
    const auto fits = [&](const std::vector<bool>& used) {
      return std::none_of(list.begin(), list.end(), [&](int rank) { return used[rank]; });
    };
    std::size_t round = 0;
    while (round < rounds.size() && !fits(taken[round])) ++round;
    if (round == rounds.size()) {
      rounds.emplace_back();
      taken.emplace_back(ranks, false);
    }
    rounds[round].push_back(list);
    for (const int rank : list) taken[round][rank] = true;
  }
  return rounds;
}

GroupCache::GroupCache(MPI_Comm parent, RankLists rank_lists, const GroupOptions& options)
    : GroupCache(all_of(parent, options), std::move(rank_lists)) {}

GroupCache::GroupCache(Group whole, RankLists rank_lists) : all_ranks_(whole.world_ranks()) {
  const int me = whole.rank();
  const MPI_Comm parent = whole.comm();
  const GroupOptions options = whole.options();
  std::erase(rank_lists, all_ranks_);
  rounds_ = creation_rounds(rank_lists, whole.size());
  groups_.emplace(all_ranks_, std::move(whole));
  for (const auto& round : rounds_) {
    const auto [list, key] = place_in(round, me);
    MPI_Comm comm = MPI_COMM_NULL;
    TAPER_MPI_CALL(MPI_Comm_split(parent, list < 0 ? MPI_UNDEFINED : list, key, &comm));
    if (list >= 0) groups_.emplace(round[list], Group::owning(comm, round[list], options));
  }
  groups_.emplace(std::vector<int>{me}, Group::self(me));
}

#if defined(TAPER_CUDA)
std::string GroupCache::connect_devices(std::shared_ptr<const nccl::Communicator> all) {
  Group& whole = groups_.at(all_ranks_);
  whole.connect(all);
  nccl::warm_up(whole);
  for (const auto& round : rounds_) {
    const auto [list, key] = place_in(round, whole.rank());
    if (list < 0) {
      all->split(nccl::Communicator::kNone, key, 0);
      continue;
    }
    Group& group = groups_.at(round[list]);
    group.connect(all->split(list, key, group.size()));
    nccl::warm_up(group);
  }
  const std::vector<int> host = Group::of_node(whole).world_ranks();
  const auto is_on_host = [&](int rank) { return index_of(host, rank) >= 0; };
  std::string problem;
  for (const auto& [degree, group] : tp_groups_) {
    const std::vector<int>& ranks = group->world_ranks();
    if (degree == 1 || degree > peers::Windows::kMostRanks ||
        !std::all_of(ranks.begin(), ranks.end(), is_on_host))
      continue;
    std::string its_problem;
    if (auto windows = peers::Windows::connect(*group, its_problem))
      groups_.at(ranks).connect(std::move(windows));
    if (problem.empty()) problem = its_problem;
  }
  return first_text(whole, problem);
}
#endif

GroupCache::RankLists tp_rank_lists(const DivisorChain& chain, int degree) {
  GroupCache::RankLists lists;
  for (int g = 0; g < chain.ranks() / degree; ++g) lists.push_back(chain.group(degree, g));
  return lists;
}

GroupCache::RankLists dp_rank_lists(const DivisorChain& chain, int degree) {
  GroupCache::RankLists lists(static_cast<std::size_t>(degree));
  for (const auto& replica : tp_rank_lists(chain, degree)) {
    for (int shard = 0; shard < degree; ++shard) lists[shard].push_back(replica[shard]);
  }
  return lists;
}

GroupCache GroupCache::for_chain(MPI_Comm parent, const DivisorChain& chain,
                                 const GroupOptions& options) {
  return for_chain(all_of(parent, options), chain);
}

GroupCache GroupCache::for_chain(Group whole, const DivisorChain& chain) {
  TAPER_INSIST(chain.ranks() == whole.size(), "the divisor chain covers " << chain.ranks()
                                                                          << " ranks, the run has "
                                                                          << whole.size());
  const int me = whole.rank();
  RankLists all;
  std::map<int, std::vector<int>> my_tp, my_dp;
  for (const int degree : chain.degrees()) {
    for (auto [lists, mine] : {std::pair(tp_rank_lists(chain, degree), &my_tp),
                               std::pair(dp_rank_lists(chain, degree), &my_dp)}) {
      for (auto& list : lists) {
        if (index_of(list, me) >= 0) (*mine)[degree] = list;
        all.push_back(std::move(list));
      }
    }
  }
  GroupCache cache(std::move(whole), std::move(all));
  for (const auto& [degree, list] : my_tp) cache.tp_groups_[degree] = &cache.group(list);
  for (const auto& [degree, list] : my_dp) cache.dp_groups_[degree] = &cache.group(list);
  return cache;
}

// Freeing a communicator is collective: in one order everywhere, which a map's own destructor does
// not promise.
GroupCache::~GroupCache() {
  while (!groups_.empty()) groups_.erase(groups_.begin());
}

const Group& GroupCache::world() const {
  return groups_.at(all_ranks_);
}

const Group& GroupCache::group(const std::vector<int>& ranks) const {
  const auto found = groups_.find(ranks);
  TAPER_INSIST(found != groups_.end(),
               "group of ranks " << list_text(ranks)
                                 << " does not exist on this rank (all groups are made at start; "
                                    "list it there)");
  return found->second;
}

const Group& GroupCache::tp_group(int degree) const {
  const auto found = tp_groups_.find(degree);
  TAPER_INSIST(found != tp_groups_.end(), "no tensor-parallel groups of degree "
                                              << degree
                                              << " (choose a degree of the divisor chain)");
  return *found->second;
}

const Group& GroupCache::dp_group(int degree) const {
  const auto found = dp_groups_.find(degree);
  TAPER_INSIST(found != dp_groups_.end(), "no data-parallel groups at tensor-parallel degree "
                                              << degree
                                              << " (choose a degree of the divisor chain)");
  return *found->second;
}

int GroupCache::count() const {
  return static_cast<int>(std::count_if(groups_.begin(), groups_.end(),
                                        [](const auto& entry) { return !entry.second.is_null(); }));
}

}  // namespace taper
