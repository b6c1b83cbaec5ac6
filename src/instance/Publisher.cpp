// SPDX-License-Identifier: Apache-2.0
#include "instance/Publisher.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "comm/Collectives.hpp"
#if defined(TAPER_CUDA)
#include "comm/nccl/Transport.hpp"
#endif
#include "kernels/Staging.hpp"
#include "kernels/checksum.hpp"
#include "kernels/copy.hpp"
#include "optim/Ownership.hpp"

namespace taper {

// Tensors arrive one after the other in the same memory, so that publishing needs no second copy of
// the model.
std::int64_t Publisher::staging_floats(const LocalParams& packed, const WeightShare& share) {
  std::int64_t largest = 0;
  for (int t = 0; t < static_cast<int>(packed.table().tensors().size()); ++t)
    if (share.packs(t)) largest = std::max(largest, packed.offset(t + 1) - packed.offset(t));
  return largest;
}

// What comes from other ranks by way of the host arrives where the host can write.
MemoryKind Publisher::staging_kind(const Ranks& ranks) {
  const Group& world = ranks.world();
  return world.is_null() || world.connects_devices() ? MemoryKind::kModel : MemoryKind::kStaging;
}

Publisher::Publisher(const Ranks& ranks, const ParamTable& table, const Ownership& owners,
                     const WeightShare& share, PackedModel* packed, const ShardedAdamW* optimizer,
                     float* staging)
    : ranks_(&ranks),
      table_(&table),
      share_(&share),
      packed_(packed),
      staging_(staging),
      bytes_(table.piece_bytes()),
      source_(table.pieces(), nullptr),
      speaks_for_(table.pieces(), false),
      is_compared_(table.pieces(), false) {
  // Masters travel as f32, whatever the type of the weights: every rank rounds them in the same
  // way. The plan is the same at every publication: no layout changes during a run.
  const Ownership packers = share.packers();
  for (std::size_t t = 0; t < table.tensors().size(); ++t) {
    const int first = table.first_piece(t);
    const RelayedMoves moves =
        plan_relayed_moves(owners, packers, bytes_, {first, first + table.tensors()[t].units});
    fetches_.push_back({OwnMoves(ranks.world(), moves.scatter, bytes_),
                        OwnMoves(ranks.world(), moves.gather, bytes_)});
  }
  for (std::size_t p = 0; p < is_compared_.size(); ++p)
    is_compared_[p] = owners[p].size() > 1 || packers[p] != owners[p];
  if (optimizer == nullptr) return;
  packs_masters_ = !optimizer->keeps_masters_on_host();
  // Replicated tensors, and KV heads in parts, have an owner in several shards: all compute the
  // same master, and the first one's counts.
  for (const auto& piece : optimizer->owned()) {
    source_[piece.id] = optimizer->master().data() + (piece.offset - optimizer->begin());
    speaks_for_[piece.id] = owners[piece.id].front() == ranks.rank();
  }
}

// All ranks get the checksums of all pieces that are compared, also of those that they never hold:
// 8 bytes for each, in one exchange.
std::vector<std::uint64_t> Publisher::owner_checksums() const {
  std::vector<std::uint64_t> sums(source_.size(), 0);
  std::vector<int> mine;
  Staged<ConstFloatVector> vectors;
  for (std::size_t p = 0; p < sums.size(); ++p) {
    if (!speaks_for_[p] || !is_compared_[p]) continue;
    mine.push_back(static_cast<int>(p));
    vectors.push_back({source_[p], bytes_[p] / sizeof(float)});
  }
  Staged<std::uint64_t> values(mine.size());
  checksums(ranks_->exec, staging_view(values), staging_view(std::as_const(vectors)));
  ranks_->exec.fence();
  for (std::size_t i = 0; i < mine.size(); ++i) sums[mine[i]] = values[i];
  all_reduce_sum(ranks_->world(), sums);  // one speaker per piece
  return sums;
}

// Masters of a tensor that this rank owns, which lie in one piece, where the host can read them.
Publisher::HostPieces Publisher::host_pieces(int tensor) {
  const int first = table_->first_piece(tensor);
  const float *begin = nullptr, *end = nullptr;
  for (int p = first; p < first + table_->tensors()[tensor].units; ++p) {
    if (source_[p] == nullptr) continue;
    if (begin == nullptr) begin = source_[p];
    end = source_[p] + table_->tensors()[tensor].unit_size();
  }
  if (begin == nullptr) return {};
  const std::size_t size = static_cast<std::size_t>(end - begin);
  return {begin, host_values(ranks_->exec, ConstFloatVector(begin, size), masters_).data()};
}

// Where the piece of a tensor that this rank holds comes to lie.
float* Publisher::place_of(int tensor, int piece) const {
  const int first = table_->first_piece(tensor) + packed_->local().units(tensor).begin;
  return staging_ + (piece - first) * table_->tensors()[tensor].unit_size();
}

// Pieces of a tensor that others own. Those of one rank would go to all copies through its link
// alone: the ranks that get them pass them on.
void Publisher::fetch(int tensor) {
  const auto& [scatter, gather] = fetches_[tensor];
  if (scatter.longest == 0) return;
#if defined(TAPER_CUDA)
  if (ranks_->world().connects_devices()) {
    fetch_between_devices(tensor, scatter);
    if (gather.longest > 0) fetch_between_devices(tensor, gather);
    return;
  }
#endif
  ranks_->exec.fence();  // the host writes where kernels still work on the tensor before
  const HostPieces own = host_pieces(tensor);
  const auto target = [&](int piece) { return place_of(tensor, piece); };
  const auto source = [&](int piece) {
    return source_[piece] != nullptr ? own.at(source_[piece]) : target(piece);
  };
  mover_.move(ranks_->world(), scatter, source, target);
  mover_.move(ranks_->world(), gather, source, target);
}

#if defined(TAPER_CUDA)
void Publisher::fetch_between_devices(int tensor, const OwnMoves& moves) {
  const std::int64_t unit = table_->tensors()[tensor].unit_size();
  // Pieces in a row lie in a row on both sides.
  const auto stretches = [&](const std::vector<OwnMoves::Peer>& peers, const auto& place) {
    std::vector<nccl::Stretch> all;
    for (const auto& peer : peers)
      for (std::size_t i = 0; i < peer.pieces.size(); ++i) {
        const int piece = peer.pieces[i];
        if (i > 0 && piece == peer.pieces[i - 1] + 1)
          all.back().count += unit;
        else
          all.push_back({peer.rank, place(piece), unit});
      }
    return all;
  };
  const auto target = [&](int piece) -> const float* { return place_of(tensor, piece); };
  const auto source = [&](int piece) {
    return source_[piece] != nullptr ? source_[piece] : target(piece);
  };
  nccl::exchange(ranks_->world(), "nccl::publish", ranks_->exec.stream(),
                 stretches(moves.from, target), stretches(moves.to, source));
}
#endif

const float* Publisher::gathered(int tensor, std::span<const LocalParams::Piece> pieces) {
  const float* end = nullptr;  // of the stretch that is copied at once
  std::int64_t size = 0;
  const auto copy_stretch = [&](float* to) {
    if (size > 0)
      copy(ranks_->exec, FloatVector(to - size, size), ConstFloatVector(end - size, size));
    size = 0;
  };
  for (const auto& piece : pieces) {
    const float* const source = source_[piece.id];
    if (source == nullptr || source != end) copy_stretch(place_of(tensor, piece.id));
    if (source == nullptr) continue;  // it was fetched
    end = source + piece.size;
    size += piece.size;
  }
  const auto& last = pieces.back();
  if (packs_masters_ &&
      size == packed_->local().offset(tensor + 1) - packed_->local().offset(tensor))
    return end - size;
  copy_stretch(place_of(tensor, last.id) + last.size);
  return staging_;
}

void Publisher::publish() {
  const PhaseScope phase(ranks_->progress, "publish");
  // Here all ranks meet: none uses the weights of before any more.
  const std::vector<std::uint64_t> expected = owner_checksums();
  std::vector<int> compared;  // pieces, and their checksums here
  Staged<std::uint64_t> arrived(packed_ != nullptr ? packed_->local().pieces().size() : 0);
  for (int t = 0; t < static_cast<int>(table_->tensors().size()); ++t) {
    fetch(t);
    if (packed_ == nullptr) continue;
    const auto pieces = packed_->local().pieces_of(t);
    if (pieces.empty()) continue;
    const bool packs = share_->packs(t);
    const float* const values = packs ? gathered(t, pieces) : nullptr;
    // Before rounding, which could hide a small difference. Own pieces are compared too, even if
    // another rank packs them: a rank whose replica of an optimizer has drifted finds its own
    // master to differ from the first owner's.
    Staged<ConstFloatVector> vectors;
    for (const auto& piece : pieces) {
      if (!is_compared_[piece.id] || speaks_for_[piece.id]) continue;
      const float* const here =
          packs ? values + (piece.offset - pieces.front().offset) : source_[piece.id];
      if (here == nullptr) continue;
      compared.push_back(piece.id);
      vectors.push_back(ConstFloatVector(here, piece.size));
    }
    checksums(ranks_->exec, {arrived.data() + compared.size() - vectors.size(), vectors.size()},
              staging_view(std::as_const(vectors)));
    if (packs) packed_->pack(ranks_->exec, t, values);
  }
  ranks_->exec.fence();
  if (share_->is_shared()) barrier(ranks_->world());  // others pack for this rank
  for (std::size_t i = 0; i < compared.size(); ++i)
    require_undamaged(compared[i], arrived[i], expected);
}

void Publisher::require_undamaged(int piece, std::uint64_t arrived,
                                  const std::vector<std::uint64_t>& expected) const {
  if (arrived == expected[piece]) return;
  const int tensor = table_->tensor_of_piece(piece);
  TAPER_FAIL(ExitCode::kFailure,
             "rank " << log_rank() << ": piece " << piece - table_->first_piece(tensor) << " of '"
                     << table_->tensors()[tensor].name
                     << "' differs from its owner's after publishing (damaged in transfer, or "
                     << "replicas have drifted apart)");
}

}  // namespace taper
