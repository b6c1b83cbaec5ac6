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

// The pieces between this rank and one peer, one after the other in plan order, as a stream of
// bytes that is cut into rounds anywhere, also inside a piece. Both ends cut at the same places.
class PieceStream {
 public:
  void append(int piece, std::int64_t bytes) {
    pieces_.push_back(piece);
    ends_.push_back(length() + bytes);
  }
  std::int64_t length() const { return ends_.empty() ? 0 : ends_.back(); }
  std::int64_t done() const { return done_; }
  std::int64_t next(std::int64_t limit) const { return std::min(limit, length() - done_); }

  // Calls visit(piece, offset in the piece, bytes) for the next `count` bytes.
  template <class Visit>
  void advance(std::int64_t count, const Visit& visit) {
    while (count > 0) {
      while (ends_[at_] == done_) ++at_;
      const std::int64_t begin = at_ == 0 ? 0 : ends_[at_ - 1];
      const std::int64_t part = std::min(count, ends_[at_] - done_);
      visit(pieces_[at_], done_ - begin, part);
      done_ += part;
      count -= part;
    }
  }

 private:
  std::vector<int> pieces_;
  std::vector<std::int64_t> ends_;
  std::size_t at_ = 0;
  std::int64_t done_ = 0;
};

struct Streams {
  std::vector<PieceStream> to, from;  // by rank of the group
  std::vector<int> local;             // pieces from this rank to itself
  // Known to all: the longest stream, and the most streams that a rank sends, or receives.
  std::int64_t longest = 0;
  int most = 1;
};

Streams make_streams(const Group& group, std::span<const PieceMove> moves,
                     std::span<const std::int64_t> bytes) {
  const auto n = static_cast<std::size_t>(group.size());
  Streams streams{std::vector<PieceStream>(n), std::vector<PieceStream>(n), {}, 0, 1};
  std::map<std::pair<int, int>, std::int64_t> pairs;
  std::vector<int> sent(n), received(n);  // streams
  for (const PieceMove& move : moves) {
    const int from = group.index_of(move.from), to = group.index_of(move.to);
    TAPER_INSIST(from >= 0 && to >= 0, "piece " << move.piece << " moves from rank " << move.from
                                                << " to rank " << move.to
                                                << ", not both in the group that moves pieces");
    TAPER_EXPECT(move.piece >= 0 && static_cast<std::size_t>(move.piece) < bytes.size());
    const std::int64_t size = bytes[static_cast<std::size_t>(move.piece)];
    if (from == to) {
      if (from == group.rank()) streams.local.push_back(move.piece);
      continue;
    }
    const auto [pair, is_new] = pairs.try_emplace({from, to}, 0);
    if (is_new) streams.most = std::max({streams.most, ++sent[from], ++received[to]});
    streams.longest = std::max(streams.longest, pair->second += size);
    if (from == group.rank()) streams.to[to].append(move.piece, size);
    if (to == group.rank()) streams.from[from].append(move.piece, size);
  }
  return streams;
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

PieceMover::PieceMover(PieceMoverOptions options) : options_(options) {
  for (const auto& problem : options_.problems()) TAPER_INSIST(false, "piece mover: " << problem);
}

MoveStatistics PieceMover::move(const Group& group, std::span<const PieceMove> moves,
                                std::span<const std::int64_t> bytes, const Source& source,
                                const Target& target) {
  Streams streams = make_streams(group, moves, bytes);
  MoveStatistics moved;
  for (const int piece : streams.local) {
    const auto size = static_cast<std::size_t>(bytes[static_cast<std::size_t>(piece)]);
    if (size > 0) std::memcpy(target(piece), source(piece), size);
    moved.bytes_local += static_cast<std::int64_t>(size);
  }

  const auto n = static_cast<std::size_t>(group.size());
  const std::int64_t limit = std::max<std::int64_t>(1, options_.round_bytes / streams.most);
  std::vector<std::int64_t> sending(n), receiving(n);
  for (; moved.rounds * limit < streams.longest; ++moved.rounds) {
    for (std::size_t r = 0; r < n; ++r) {
      sending[r] = streams.to[r].next(limit);
      receiving[r] = streams.from[r].next(limit);
    }
    fit(send_buffer_, sending);
    fit(receive_buffer_, receiving);

    std::byte* packed = send_buffer_.data();
    for (std::size_t r = 0; r < n; ++r) {
      streams.to[r].advance(sending[r], [&](int piece, std::int64_t offset, std::int64_t count) {
        std::memcpy(packed, static_cast<const std::byte*>(source(piece)) + offset, count);
        packed += count;
      });
    }
    all_to_all_v(group, receive_buffer_, receiving, send_buffer_, sending);
    const std::byte* unpacked = receive_buffer_.data();
    for (std::size_t r = 0; r < n; ++r) {
      streams.from[r].advance(
          receiving[r], [&](int piece, std::int64_t offset, std::int64_t count) {
            std::memcpy(static_cast<std::byte*>(target(piece)) + offset, unpacked, count);
            unpacked += count;
          });
    }
  }

  for (std::size_t r = 0; r < n; ++r) {
    moved.bytes_sent += streams.to[r].done();
    moved.bytes_received += streams.from[r].done();
  }
  return moved;
}

}  // namespace taper
