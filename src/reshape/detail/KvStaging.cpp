// SPDX-License-Identifier: Apache-2.0
#include "reshape/detail/KvStaging.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#if defined(TAPER_CUDA)
#include "comm/nccl/Transport.hpp"
#endif
#include "kernels/Staging.hpp"
#include "kernels/copy.hpp"

namespace taper::detail {
namespace {

constexpr std::int64_t kFloat = sizeof(float);

// Whether a sorted list has the rank.
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
#if defined(TAPER_CUDA)
  if (group.connects_devices()) plan_passes();
#endif
  for (std::size_t p = 0; p < plan.needed.size(); ++p)
    if (slot_[p] < 0 && has_rank(plan.needed[p], rank)) take_slot(static_cast<int>(p));
}

void KvStaging::take_slot(int piece) {
  slot_[static_cast<std::size_t>(piece)] = std::ssize(mine_);
  mine_.push_back(piece);
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

// Copies pages of this rank to their places among the parcels.
void KvStaging::pack(Range layers, const std::map<int, std::int64_t>& parcels) const {
  Staged<BlockCopy> pages;
  for (int l = 0; l < layers.size(); ++l)
    for (const auto& [piece, place] : parcels)
      pages.push_back({parcel(l, place), old_page(layers.begin + l, piece)});
  copy_blocks(exec_, staging_view(pages), page_);
}

MoveStatistics KvStaging::fetch(PieceMover& mover, Range layers) const {
#if defined(TAPER_CUDA)
  if (group_.connects_devices()) return fetch_between_devices(layers);
#endif
  return fetch_through_host(mover, layers);
}

MoveStatistics KvStaging::fetch_through_host(PieceMover& mover, Range layers) const {
  if (parcels_ != nullptr) {
    pack(layers, sent_);
    exec_.fence();
  }
  const int pieces = static_cast<int>(slot_.size());
  std::vector<PieceMove> moves;
  for (int l = 0; l < layers.size(); ++l)
    for (const PieceMove& move : transfers_)
      moves.push_back({l * pieces + move.piece, move.from, move.to});
  const std::vector<std::int64_t> bytes(static_cast<std::size_t>(pieces) * layers.size(),
                                        page_ * kFloat);
  return mover.move(
      group_, OwnMoves(group_, moves, bytes),
      [&](int piece) -> const float* {
        const int layer = piece / pieces;
        return parcels_ != nullptr ? parcel(layer, sent_.at(piece % pieces))
                                   : old_page(layers.begin + layer, piece % pieces);
      },
      [&](int piece) { return staged(piece / pieces, piece % pieces); });
}

#if defined(TAPER_CUDA)
// A page that goes to several ranks goes to one after the other, so that parcels never take more
// room than pages.
void KvStaging::plan_passes() {
  std::vector<PieceMove> left = transfers_;
  while (!left.empty()) {
    std::set<std::pair<int, int>> sent;  // piece, from
    std::vector<PieceMove> now, later;
    for (const PieceMove& move : left)
      (sent.emplace(move.piece, move.from).second ? now : later).push_back(move);
    left = std::move(later);
    const auto ranks = static_cast<std::size_t>(group_.size());
    Pass pass{
        {}, std::vector<std::int64_t>(ranks), std::vector<std::int64_t>(ranks), std::ssize(mine_)};
    for (std::size_t r = 0; r < ranks; ++r)
      for (const PieceMove& move : now) {
        const int other = group_.world_ranks()[r];
        if (move.from == rank_ && move.to == other) {
          pass.parcels.emplace(move.piece, std::ssize(pass.parcels));
          pass.to[r] += page_;
        }
        if (move.to == rank_ && move.from == other) {
          take_slot(move.piece);
          pass.from[r] += page_;
        }
      }
    passes_.push_back(std::move(pass));
  }
}

MoveStatistics KvStaging::fetch_between_devices(Range layers) const {
  for (const Pass& pass : passes_) {
    pack(layers, pass.parcels);
    for (int l = 0; l < layers.size(); ++l)
      nccl::all_to_all_v(group_, exec_.stream(), stage_ + l * floats() + pass.first_slot * page_,
                         pass.from, parcel(l, 0), pass.to);
  }
  MoveStatistics moved;
  moved.bytes_sent = bytes_out() * layers.size();
  moved.bytes_received = bytes_in() * layers.size();
  return moved;
}
#endif

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
