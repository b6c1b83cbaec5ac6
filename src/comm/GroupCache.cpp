// SPDX-License-Identifier: Apache-2.0
#include "comm/GroupCache.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "comm/MpiCall.hpp"

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

GroupCache::GroupCache(MPI_Comm parent, RankLists rank_lists, const GroupOptions& options) {
  int ranks = 1, me = 0;
  GroupOptions resolved = options;
  if (parent != MPI_COMM_NULL) {
    TAPER_MPI_CALL(MPI_Comm_size(parent, &ranks));
    TAPER_MPI_CALL(MPI_Comm_rank(parent, &me));
    resolved.wait = resolve_wait_policy(options.wait, parent);
  }
  all_ranks_.resize(static_cast<std::size_t>(ranks));
  std::iota(all_ranks_.begin(), all_ranks_.end(), 0);
  rank_lists.insert(rank_lists.begin(), all_ranks_);
  rank_lists.push_back({me});

  for (const auto& round : creation_rounds(rank_lists, ranks)) {
    int color = MPI_UNDEFINED, key = 0;
    for (std::size_t i = 0; i < round.size(); ++i) {
      const int at = index_of(round[i], me);
      if (at < 0) continue;
      color = static_cast<int>(i);
      key = at;
    }
    MPI_Comm comm = MPI_COMM_NULL;
    TAPER_MPI_CALL(MPI_Comm_split(parent, color, key, &comm));
    if (color == MPI_UNDEFINED) continue;
    const auto& list = round[static_cast<std::size_t>(color)];
    groups_.emplace(list, Group::owning(comm, list, resolved));
  }
  groups_.emplace(std::vector<int>{me}, Group::self(me));
}

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
  int ranks = 1, me = 0;
  if (parent != MPI_COMM_NULL) {
    TAPER_MPI_CALL(MPI_Comm_size(parent, &ranks));
    TAPER_MPI_CALL(MPI_Comm_rank(parent, &me));
  }
  TAPER_INSIST(chain.ranks() == ranks,
               "the divisor chain covers " << chain.ranks() << " ranks, the run has " << ranks);
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
  GroupCache cache(parent, std::move(all), options);
  for (const auto& [degree, list] : my_tp) cache.tp_groups_[degree] = &cache.group(list);
  for (const auto& [degree, list] : my_dp) cache.dp_groups_[degree] = &cache.group(list);
  return cache;
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
