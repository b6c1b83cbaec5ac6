// SPDX-License-Identifier: Apache-2.0
#include "comm/PieceMover.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"

namespace taper {
namespace {

// The pieces between this rank and a peer as a stream of bytes that is cut into rounds anywhere,
// also inside a piece. Both ends cut at the same places.
class PieceStream {
 public:
  explicit PieceStream(const OwnMoves::Peer& peer) : peer_(&peer) {}

  int rank() const { return peer_->rank; }
  std::int64_t next(std::int64_t limit) const { return std::min(limit, peer_->length() - done_); }

  // Calls visit(piece, offset in the piece, bytes) for the next `count` bytes.
  template <class Visit>
  void advance(std::int64_t count, const Visit& visit) {
    const auto& ends = peer_->ends;
    while (count > 0) {
      while (ends[at_] == done_) ++at_;
      const std::int64_t begin = at_ == 0 ? 0 : ends[at_ - 1];
      const std::int64_t part = std::min(count, ends[at_] - done_);
      visit(peer_->pieces[at_], done_ - begin, part);
      done_ += part;
      count -= part;
    }
  }

 private:
  const OwnMoves::Peer* peer_;
  std::size_t at_ = 0;
  std::int64_t done_ = 0;
};

std::vector<PieceStream> streams_of(const std::vector<OwnMoves::Peer>& peers) {
  return {peers.begin(), peers.end()};
}

std::int64_t total(const std::vector<OwnMoves::Peer>& peers) {
  return std::accumulate(peers.begin(), peers.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& peer) { return sum + peer.length(); });
}

void fit(std::vector<std::byte>& buffer, std::span<const std::int64_t> counts) {
  const auto needed =
      static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  if (buffer.size() < needed) buffer.resize(needed);
}

}  // namespace

std::vector<std::string> PieceMoverOptions::problems() const {
  if (round_bytes < 1) return {"round_bytes must be positive"};
  return {};
}

void OwnMoves::Peer::append(int piece, std::int64_t bytes) {
  pieces.push_back(piece);
  ends.push_back(length() + bytes);
}

OwnMoves::OwnMoves(const Group& group, std::span<const PieceMove> moves,
                   std::span<const std::int64_t> bytes) {
  local.rank = group.rank();
  std::map<std::pair<int, int>, std::int64_t> pairs;
  std::map<int, Peer> sent, received;
  std::map<int, int> receivers, senders;  // by the rank that sends, or receives
  for (const PieceMove& move : moves) {
    const int sender = group.index_of(move.from), receiver = group.index_of(move.to);
    TAPER_INSIST(sender >= 0 && receiver >= 0,
                 "piece " << move.piece << " moves from rank " << move.from << " to rank "
                          << move.to << ", not both in the group that moves pieces");
    TAPER_EXPECT(move.piece >= 0 && static_cast<std::size_t>(move.piece) < bytes.size());
    const std::int64_t size = bytes[static_cast<std::size_t>(move.piece)];
    if (sender == receiver) {
      if (sender == group.rank()) local.append(move.piece, size);
      continue;
    }
    const auto [pair, is_new] = pairs.try_emplace({sender, receiver}, 0);
    if (is_new) most_peers = std::max({most_peers, ++receivers[sender], ++senders[receiver]});
    longest = std::max(longest, pair->second += size);
    if (sender == group.rank()) sent[receiver].append(move.piece, size);
    if (receiver == group.rank()) received[sender].append(move.piece, size);
  }
  for (auto& [rank, peer] : sent) {
    peer.rank = rank;
    to.push_back(std::move(peer));
  }
  for (auto& [rank, peer] : received) {
    peer.rank = rank;
    from.push_back(std::move(peer));
  }
}

PieceMover::PieceMover(PieceMoverOptions options) : options_(options) {
  for (const auto& problem : options_.problems()) TAPER_INSIST(false, "piece mover: " << problem);
}

MoveStatistics PieceMover::move(const Group& group, const OwnMoves& moves, const Source& source,
                                const Target& target) {
  MoveStatistics moved{total(moves.to), total(moves.from), moves.local.length()};
  PieceStream(moves.local)
      .advance(moved.bytes_local, [&](int piece, std::int64_t, std::int64_t size) {
        std::memcpy(target(piece), source(piece), static_cast<std::size_t>(size));
      });

  const auto n = static_cast<std::size_t>(group.size());
  const std::int64_t limit =
      std::max<std::int64_t>(1, options_.round_bytes / std::max(1, moves.most_peers));
  std::vector<PieceStream> to = streams_of(moves.to), from = streams_of(moves.from);
  std::vector<std::int64_t> sending(n), receiving(n);
  for (; moved.rounds * limit < moves.longest; ++moved.rounds) {
    for (const PieceStream& s : to) sending[s.rank()] = s.next(limit);
    for (const PieceStream& s : from) receiving[s.rank()] = s.next(limit);
    fit(send_buffer_, sending);
    fit(receive_buffer_, receiving);

    std::byte* packed = send_buffer_.data();
    for (PieceStream& s : to)
      s.advance(sending[s.rank()], [&](int piece, std::int64_t offset, std::int64_t count) {
        std::memcpy(packed, static_cast<const std::byte*>(source(piece)) + offset, count);
        packed += count;
      });
    all_to_all_v(group, receive_buffer_, receiving, send_buffer_, sending);
    const std::byte* unpacked = receive_buffer_.data();
    for (PieceStream& s : from)
      s.advance(receiving[s.rank()], [&](int piece, std::int64_t offset, std::int64_t count) {
        std::memcpy(static_cast<std::byte*>(target(piece)) + offset, unpacked, count);
        unpacked += count;
      });
  }
  return moved;
}

}  // namespace taper
