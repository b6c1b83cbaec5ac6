// SPDX-License-Identifier: Apache-2.0
#include "reshape/detail/KvStaging.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/Staging.hpp"
#include "kernels/copy.hpp"

namespace taper::detail {
namespace {

constexpr std::int64_t kFloat = sizeof(float);

// Of a sorted list.
bool has_rank(const std::vector<int>& ranks, int rank) {
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

}  // namespace

KvStaging::KvStaging(const Exec& exec, const KvPlan& plan, int kv_heads, const Group& group,
                     int rank, KvSide before, KvSide after, float* stage, float* parcels)
    : exec_(exec),
      plan_(plan),
      kv_heads_(kv_heads),
      group_(group),
      rank_(rank),
      before_(std::move(before)),
      after_(std::move(after)),
      stage_(stage),
      parcels_(parcels),
      page_(before_.pool.shape().page()),
      slot_(plan.needed.size(), -1) {
  for (const PieceMove& move : plan.transfers)
    if (group.index_of(move.to) >= 0) {
      transfers_.push_back(move);
      if (move.from == rank) sent_.emplace(move.piece, std::ssize(sent_));
    }
  for (std::size_t p = 0; p < plan.needed.size(); ++p)
    if (has_rank(plan.needed[p], rank)) {
      slot_[p] = static_cast<std::int64_t>(mine_.size());
      mine_.push_back(static_cast<int>(p));
    }
}

std::int64_t KvStaging::bytes_out() const {
  return page_ * kFloat * std::count_if(transfers_.begin(), transfers_.end(), [&](const auto& m) {
           return m.from == rank_;
         });
}

std::int64_t KvStaging::bytes_in() const {
  return page_ * kFloat * std::count_if(transfers_.begin(), transfers_.end(), [&](const auto& m) {
           return m.to == rank_;
         });
}

const float* KvStaging::old_page(int layer, int piece) const {
  return before_.pool.page(layer, plan_.blocks[piece / kv_heads_].from,
                           piece % kv_heads_ - before_.heads.begin);
}

float* KvStaging::new_page(int layer, int piece) const {
  return after_.pool.page(layer, plan_.blocks[piece / kv_heads_].to,
                          piece % kv_heads_ - after_.heads.begin);
}

// Puts the pages that this rank sends where the host can read them.
void KvStaging::pack(Range layers) const {
  Staged<BlockCopy> pages;
  for (int l = 0; l < layers.size(); ++l)
    for (const auto& [piece, place] : sent_)
      pages.push_back({parcel(l, piece), old_page(layers.begin + l, piece)});
  copy_blocks(exec_, staging_view(pages), page_);
  exec_.fence();
}

MoveStatistics KvStaging::fetch(PieceMover& mover, Range layers) const {
  if (parcels_ != nullptr) pack(layers);
  const int pieces = static_cast<int>(slot_.size());
  std::vector<PieceMove> moves;
  for (int l = 0; l < layers.size(); ++l)
    for (const PieceMove& move : transfers_)
      moves.push_back({l * pieces + move.piece, move.from, move.to});
  const std::vector<std::int64_t> bytes(static_cast<std::size_t>(pieces) * layers.size(),
                                        page_ * kFloat);
  return mover.move(
      group_, moves, bytes,
      [&](int piece) -> const float* {
        const int layer = piece / pieces;
        return parcels_ != nullptr ? parcel(layer, piece % pieces)
                                   : old_page(layers.begin + layer, piece % pieces);
      },
      [&](int piece) { return staged(piece / pieces, piece % pieces); });
}

std::int64_t KvStaging::copy_own(Range layers) const {
  Staged<BlockCopy> pages;
  for (int l = 0; l < layers.size(); ++l)
    for (const int p : mine_)
      if (has_rank(plan_.held[p], rank_))
        pages.push_back({staged(l, p), old_page(layers.begin + l, p)});
  copy_blocks(exec_, staging_view(pages), page_);
  exec_.fence();
  return static_cast<std::int64_t>(pages.size()) * page_ * kFloat;
}

void KvStaging::write(Range layers) const {
  Staged<BlockCopy> pages;
  for (int l = 0; l < layers.size(); ++l)
    for (const int p : mine_) pages.push_back({new_page(layers.begin + l, p), staged(l, p)});
  copy_blocks(exec_, staging_view(pages), page_);
  exec_.fence();
}

}  // namespace taper::detail
