// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/PieceMover.hpp"
#include "instance/WeightShare.hpp"
#include "model/PackedModel.hpp"
#include "optim/ShardedAdamW.hpp"
#include "session/Ranks.hpp"

namespace taper {

// Brings the f32 masters of optimizers into packed weights, in whatever layouts: needed minus held,
// tensor by tensor through the resharder, rounded and packed on arrival. Also checks that what
// arrived is what was sent, and that ranks that own the same pieces agree.
class Publisher {
 public:
  // `owners`: of each piece the ranks whose optimizer has its master. `share`: which of the ranks
  // pack. `packed` and `optimizer` are those of this rank; null if it holds no weights, or owns
  // nothing. `staging` holds the largest tensor that this rank packs: staging_floats(), in memory
  // of staging_kind().
  Publisher(const Ranks& ranks, const ParamTable& table, const Ownership& owners,
            const WeightShare& share, PackedModel* packed, const ShardedAdamW* optimizer,
            float* staging);
  static std::int64_t staging_floats(const LocalParams& packed, const WeightShare& share);
  static MemoryKind staging_kind(const Ranks& ranks);

  // A phase of its own within that of the caller. Between connected GPUs pieces go from one to the
  // other. Begins when all ranks have called it: then none uses the weights of before any more.
  // Throws Error if a piece arrived damaged. Collective over the world.
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
#if defined(TAPER_CUDA)
  void fetch_between_devices(int tensor, const OwnMoves& moves);
#endif
  // The values of a tensor whose pieces this rank holds: its masters where all are its own, in a
  // row and in memory from which packing may read twice, else staging_, into which its own are
  // copied.
  const float* gathered(int tensor, std::span<const LocalParams::Piece> pieces);
  void require_undamaged(int piece, std::uint64_t arrived,
                         const std::vector<std::uint64_t>& expected) const;

  const Ranks* ranks_;
  const ParamTable* table_;
  const WeightShare* share_;
  PackedModel* packed_;
  float* staging_;
  std::vector<std::int64_t> bytes_;  // per piece
  struct Fetch {
    OwnMoves scatter, gather;
  };
  std::vector<Fetch> fetches_;        // per tensor
  std::vector<const float*> source_;  // per piece: where its optimizer is here; null: elsewhere
  std::vector<bool> speaks_for_;      // per piece: this rank is its first owner
  std::vector<bool> is_compared_;  // per piece: a rank other than its first owner packs or owns it
  bool packs_masters_ = false;
  PieceMover mover_;
  std::vector<float> masters_;  // of a tensor, if the host cannot read them where they are
};

}  // namespace taper
