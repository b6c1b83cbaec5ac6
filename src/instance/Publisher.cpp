// SPDX-License-Identifier: Apache-2.0
#include "instance/Publisher.hpp"

#include <algorithm>

#include "base/Checksum.hpp"
#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "kernels/copy.hpp"
#include "optim/Ownership.hpp"

namespace taper {

// Tensors arrive one after the other in the same memory, so that publishing needs no second copy of
// the model.
std::int64_t Publisher::staging_floats(const LocalParams& packed) {
  std::int64_t largest = 0;
  for (int t = 0; t < static_cast<int>(packed.table().tensors().size()); ++t)
    largest = std::max(largest, packed.offset(t + 1) - packed.offset(t));
  return largest;
}

Publisher::Publisher(const Ranks& ranks, const ParamTable& table, const RankGrid& training,
                     PackedModel& packed, int packed_tp, const ShardedAdamW& optimizer,
                     const LocalParams& training_local, float* staging)
    : ranks_(&ranks),
      table_(&table),
      packed_(&packed),
      staging_(staging),
      bytes_(table.pieces()),
      moves_(table.tensors().size()),
      source_(table.pieces(), nullptr),
      speaks_for_(table.pieces(), false) {
  // Masters travel as f32, whatever the type of the weights: every rank rounds them in the same
  // way.
  for (int t = 0; t < static_cast<int>(table.tensors().size()); ++t)
    for (int u = 0; u < table.tensors()[t].units; ++u)
      bytes_[table.first_piece(t) + u] =
          table.tensors()[t].unit_size() * static_cast<std::int64_t>(sizeof(float));
  // The plan is the same at every publication: neither layout changes during a run.
  const Ownership owners = owned_pieces(table, ranks.chain, training);
  const Ownership holders = held_pieces(table, ranks.chain, {packed_tp, ranks.size() / packed_tp});
  for (const PieceMove& move : plan_moves(owners, holders, bytes_))
    moves_[table.tensor_of_piece(move.piece)].push_back(move);
  // The optimizers of other data-parallel ranks own most pieces of this shard. Replicated tensors,
  // and KV heads in parts, have an owner in several shards: all compute the same master, and the
  // first one's counts.
  for (const auto& piece : training_local.pieces()) {
    if (!std::binary_search(owners[piece.id].begin(), owners[piece.id].end(), ranks.rank()))
      continue;
    source_[piece.id] = optimizer.master().data() + (piece.offset - optimizer.begin());
    speaks_for_[piece.id] = owners[piece.id].front() == ranks.rank();
  }
}

// All ranks get the checksums of all pieces, also of those that they never hold: 8 bytes for each,
// in one exchange.
std::vector<std::uint64_t> Publisher::owner_checksums() const {
  std::vector<std::uint64_t> sums(source_.size(), 0);
  std::vector<float> buffer;
  for (std::size_t p = 0; p < sums.size(); ++p)
    if (speaks_for_[p])
      sums[p] = checksum_of(host_values(
          ranks_->exec, ConstFloatVector(source_[p], bytes_[p] / sizeof(float)), buffer));
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

void Publisher::publish() {
  const std::vector<std::uint64_t> expected = owner_checksums();
  const LocalParams& local = packed_->local();
  std::vector<float> buffer;
  std::size_t next = 0;  // pieces of the layout are in the order of the tensors
  for (int t = 0; t < static_cast<int>(table_->tensors().size()); ++t) {
    const std::int64_t begin = local.offset(t), end = local.offset(t + 1),
                       unit = table_->tensors()[t].unit_size();
    const int first_local = table_->first_piece(t) + local.units(t).begin;
    const HostPieces own = host_pieces(t);
    mover_.move(
        ranks_->world(), moves_[t], bytes_, [&](int piece) { return own.at(source_[piece]); },
        [&](int piece) { return staging_ + (piece - first_local) * unit; });
    for (; next < local.pieces().size() && local.pieces()[next].offset < end; ++next) {
      const auto& piece = local.pieces()[next];
      const FloatVector here(staging_ + (piece.offset - begin), piece.size);
      // What a rank owns itself is not among the moves (needed minus held).
      if (source_[piece.id] != nullptr)
        copy(ranks_->exec, here, ConstFloatVector(source_[piece.id], piece.size));
      // Before rounding, which could hide a small difference. Own pieces are compared too: a rank
      // whose replica of an optimizer has drifted finds its own master to differ from the first
      // owner's.
      if (checksum_of(host_values(ranks_->exec, here, buffer)) != expected[piece.id])
        TAPER_FAIL(
            ExitCode::kFailure,
            "rank " << ranks_->rank() << ": piece " << piece.id - table_->first_piece(t) << " of '"
                    << table_->tensors()[t].name
                    << "' differs from its owner's after publishing (damaged in transfer, or "
                    << "replicas have drifted apart)");
    }
    packed_->pack(ranks_->exec, t, staging_);
    ranks_->exec.fence();  // the next tensor comes to the same place
  }
}

}  // namespace taper
