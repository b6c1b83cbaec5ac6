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

// Executes plans of piece moves (shard/ReshapePlan.hpp): packs per peer, exchanges in rounds of
// bounded size, unpacks.
class PieceMover {
 public:
  explicit PieceMover(PieceMoverOptions options = {});

  using Source = std::function<const void*(int piece)>;
  using Target = std::function<void*(int piece)>;

  // `moves` is the same on all ranks of the group and names them by world rank; bytes[piece] is the
  // size of a piece. source is asked for pieces that this rank sends, target for those that it
  // receives, possibly several times; memory of a target must not overlap that of a source.
  // Collective over `group`.
  MoveStatistics move(const Group& group, std::span<const PieceMove> moves,
                      std::span<const std::int64_t> bytes, const Source& source,
                      const Target& target);

 private:
  PieceMoverOptions options_;
  std::vector<std::byte> send_buffer_;  // kept for the next plan
  std::vector<std::byte> receive_buffer_;
};

}  // namespace taper
