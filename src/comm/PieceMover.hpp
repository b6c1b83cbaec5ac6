// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/Group.hpp"
#include "shard/ReshapePlan.hpp"

namespace taper {

struct PieceMoverOptions {
  // Most bytes that a rank sends, and receives, in one round: buffers of this size stay in a
  // core's cache between packing and sending.
  std::int64_t round_bytes = 1 << 20;

  std::vector<std::string> problems() const;
};

// What this rank moved.
struct MoveStatistics {
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  std::int64_t bytes_local = 0;  // copied from this rank to itself
  int rounds = 0;
};

// What one rank of a group has to do in a plan of piece moves (shard/ReshapePlan.hpp). Made once
// for a plan that is executed many times: it is as large as what this rank moves, the plan as what
// all do.
struct OwnMoves {
  // Pieces to a rank, or from it, in plan order: the same list at both ends.
  struct Peer {
    int rank = 0;  // of the group
    std::vector<int> pieces;
    std::vector<std::int64_t> ends;  // bytes up to the end of each piece

    void append(int piece, std::int64_t bytes);
    std::int64_t length() const { return ends.empty() ? 0 : ends.back(); }
  };

  // `moves` is the same on all ranks of the group and names them by world rank; bytes[piece] is the
  // size of a piece.
  OwnMoves(const Group& group, std::span<const PieceMove> moves,
           std::span<const std::int64_t> bytes);

  std::vector<Peer> to, from;  // other ranks, ascending
  Peer local;                  // from this rank to itself
  // Of the whole group: the most bytes between two ranks, and the most peers that a rank sends to,
  // or receives from.
  std::int64_t longest = 0;
  int most_peers = 0;
};

// Executes plans of piece moves: packs per peer, exchanges in rounds of bounded size, unpacks.
class PieceMover {
 public:
  explicit PieceMover(PieceMoverOptions options = {});

  using Source = std::function<const void*(int piece)>;
  using Target = std::function<void*(int piece)>;

  // source is asked for pieces that this rank sends, target for those that it receives, possibly
  // several times; memory of a target must not overlap that of a source. Collective over `group`.
  MoveStatistics move(const Group& group, const OwnMoves& moves, const Source& source,
                      const Target& target);

 private:
  PieceMoverOptions options_;
  std::vector<std::byte> send_buffer_;  // kept for the next plan
  std::vector<std::byte> receive_buffer_;
};

}  // namespace taper
