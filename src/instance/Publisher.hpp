// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "comm/PieceMover.hpp"
#include "model/PackedModel.hpp"
#include "optim/ShardedAdamW.hpp"
#include "session/Ranks.hpp"

namespace taper {

// Brings the optimizer's f32 masters, sharded over all ranks, into the packed weights of every
// rank: needed minus held, tensor by tensor through the resharder, rounded and packed on arrival.
// The packed layout may differ from the training layout. Also checks that what arrived is what was
// sent.
class Publisher {
 public:
  // `staging` holds the largest local tensor of the packed layout: staging_floats(), in memory of
  // staging_kind().
  Publisher(const Ranks& ranks, const ParamTable& table, const RankGrid& training,
            PackedModel& packed, int packed_tp, const ShardedAdamW& optimizer,
            const LocalParams& training_local, float* staging);
  static std::int64_t staging_floats(const LocalParams& packed);
  static MemoryKind staging_kind(const Ranks& ranks);

  // Between connected GPUs pieces go from one to the other. Throws Error if a piece arrived
  // damaged. Collective over the world.
  void publish();

 private:
  // By piece, of the masters of its first owner. Collective over the world.
  std::vector<std::uint64_t> owner_checksums() const;

  // Values that begin at `from` where kernels work, and at `here` for the host.
  struct HostPieces {
    const float *from = nullptr, *here = nullptr;
    const float* at(const float* piece) const { return here + (piece - from); }
  };
  HostPieces host_pieces(int tensor);
  float* place_of(int tensor, int piece) const;
  void fetch(int tensor);
  void require_undamaged(int piece, std::uint64_t arrived,
                         const std::vector<std::uint64_t>& expected) const;

  const Ranks* ranks_;
  const ParamTable* table_;
  PackedModel* packed_;
  float* staging_;
  std::vector<std::int64_t> bytes_;            // per piece
  std::vector<std::vector<PieceMove>> moves_;  // per tensor
  std::vector<const float*> source_;  // per piece: where the optimizer holds it; null: elsewhere
  std::vector<bool> speaks_for_;      // per piece: this rank is its first owner
  PieceMover mover_;
  std::vector<float> masters_;  // of a tensor, if the host cannot read them where they are
};

}  // namespace taper
