// SPDX-License-Identifier: Apache-2.0
#include "instance/WeightShare.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "base/Error.hpp"
#include "model/ModelShard.hpp"

namespace taper {
namespace {

// Of these ranks, for each tensor of their shard the one that packs it.
std::vector<int> choose_packers(const LocalParams& local, const std::vector<int>& ranks,
                                const Ownership& masters) {
  const auto tensors = static_cast<int>(local.table().tensors().size());
  std::map<int, std::int64_t> load;  // values to pack, by rank
  for (const int rank : ranks) load[rank] = 0;
  std::vector<int> packers(static_cast<std::size_t>(tensors), -1);
  const auto give = [&](int tensor, int rank) {
    packers[tensor] = rank;
    load[rank] += local.offset(tensor + 1) - local.offset(tensor);
  };
  const auto by_number = [](const auto& a, const auto& b) { return a.second < b.second; };

  std::vector<std::map<int, int>> owned(packers.size());  // pieces, by the rank that has the master
  if (!masters.empty())
    for (const auto& piece : local.pieces())
      for (const int owner : masters[piece.id])
        if (load.contains(owner)) ++owned[local.table().tensor_of_piece(piece.id)][owner];
  for (int t = 0; t < tensors; ++t) {
    const auto most = std::max_element(owned[t].begin(), owned[t].end(), by_number);
    const auto has_most = [&](const auto& other) { return other.second == most->second; };
    // Where several have as much, it is dealt like a tensor that comes from elsewhere.
    if (most != owned[t].end() && std::ranges::count_if(owned[t], has_most) == 1)
      give(t, most->first);
  }
  for (int t = 0; t < tensors; ++t)
    if (packers[t] < 0) give(t, std::min_element(load.begin(), load.end(), by_number)->first);
  return packers;
}

}  // namespace

WeightShare::WeightShare(const Ranks& ranks, const ParamTable& table, const Holders& holders,
                         const Ownership& masters)
    : table_(&table), tp_(holders.layout.grid.tp), rank_(ranks.rank()) {
  for (int rank = holders.layout.first; rank < holders.layout.ranks().end(); ++rank) {
    if (holders.without.has(rank)) continue;
    const int domain = ranks.hosts.ranks[rank].memory_domain,
              shard = ranks.chain.shard_index(rank, tp_);
    auto copy = std::ranges::find_if(copies_, [&](const Copy& other) {
      return domain >= 0 && other.memory_domain == domain && other.shard == shard;
    });
    if (copy == copies_.end()) copy = copies_.insert(copy, {domain, shard, {}, {}});
    copy->ranks.push_back(rank);
    if (rank == rank_) own_ = static_cast<int>(copy - copies_.begin());
  }
  for (Copy& copy : copies_)
    copy.packers =
        choose_packers(LocalParams(table, ModelShard(table, tp_, copy.shard)), copy.ranks, masters);
}

bool WeightShare::is_shared() const {
  return std::ranges::any_of(copies_, [](const Copy& copy) { return copy.ranks.size() > 1; });
}

MemoryShare WeightShare::memory() const {
  TAPER_INSIST(own_ >= 0, "rank " << rank_ << " holds no weights of this model");
  const Copy& copy = copies_[own_];
  return {"memory domain " + std::to_string(copy.memory_domain) + ", shard " +
              std::to_string(copy.shard) + " of " + std::to_string(tp_),
          static_cast<int>(copy.ranks.size()), copy.ranks.front() == rank_};
}

bool WeightShare::packs(int tensor) const {
  return own_ >= 0 && copies_[own_].packers[tensor] == rank_;
}

Ownership WeightShare::packers() const {
  Ownership packers(table_->pieces());
  for (const Copy& copy : copies_) {
    const LocalParams local(*table_, ModelShard(*table_, tp_, copy.shard));
    for (const auto& piece : local.pieces())
      packers[piece.id].push_back(copy.packers[table_->tensor_of_piece(piece.id)]);
  }
  // As in lists of owners and holders.
  for (auto& ranks : packers) std::ranges::sort(ranks);
  return packers;
}

}  // namespace taper
