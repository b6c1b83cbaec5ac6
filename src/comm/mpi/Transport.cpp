// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/Transport.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/Error.hpp"
#include "comm/MpiCall.hpp"

namespace taper::mpi {
namespace {

constexpr int kTag = 1;

// Calls block() or post(&request) and waits, in the mode of the group. All ranks of a group have
// the same mode: blocking and non-blocking collectives must not be mixed in one operation.
template <class Block, class Post>
void complete(const Group& group, const Block& block, const Post& post) {
  if (group.wait() == WaitMode::kBlock) {
    block();
    return;
  }
  MPI_Request request = MPI_REQUEST_NULL;
  post(&request);
  yield_until_done({&request, 1});
}

void complete_all(const Group& group, std::vector<MPI_Request>& requests) {
  if (requests.empty()) return;
  if (group.wait() == WaitMode::kBlock) {
    TAPER_MPI_CALL(
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
  } else {
    yield_until_done(requests);
  }
}

// Pieces of at most the group's message size, in the same order at both ends.
template <class Transfer>
void in_pieces(const Group& group, std::int64_t bytes, const Transfer& transfer) {
  for (std::int64_t at = 0; at < bytes; at += group.max_message_bytes()) {
    transfer(at, static_cast<int>(std::min(group.max_message_bytes(), bytes - at)));
  }
}

void post_receive(const Group& group, std::byte* out, std::int64_t bytes, int from,
                  std::vector<MPI_Request>& requests) {
  in_pieces(group, bytes, [&](std::int64_t at, int count) {
    TAPER_MPI_CALL(MPI_Irecv(out + at, count, MPI_BYTE, from, kTag, group.comm(),
                             &requests.emplace_back(MPI_REQUEST_NULL)));
  });
}

void post_send(const Group& group, const std::byte* in, std::int64_t bytes, int to,
               std::vector<MPI_Request>& requests) {
  in_pieces(group, bytes, [&](std::int64_t at, int count) {
    TAPER_MPI_CALL(MPI_Isend(in + at, count, MPI_BYTE, to, kTag, group.comm(),
                             &requests.emplace_back(MPI_REQUEST_NULL)));
  });
}

// Where the piece of each rank begins, and, last, where all of them end.
std::vector<std::int64_t> offsets_of(std::span<const std::int64_t> bytes) {
  std::vector<std::int64_t> offsets(bytes.size() + 1, 0);
  std::partial_sum(bytes.begin(), bytes.end(), offsets.begin() + 1);
  return offsets;
}

void all_gather_equal(const Group& group, std::byte* out, const std::byte* in, int bytes) {
  complete(
      group,
      [&] {
        TAPER_MPI_CALL(MPI_Allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, group.comm()));
      },
      [&](MPI_Request* request) {
        TAPER_MPI_CALL(
            MPI_Iallgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, group.comm(), request));
      });
}

void all_gather_unequal(const Group& group, std::byte* out, const std::byte* in,
                        std::span<const std::int64_t> bytes) {
  const std::vector<int> counts(bytes.begin(), bytes.end());
  std::vector<int> starts(counts.size(), 0);
  std::partial_sum(counts.begin(), counts.end() - 1, starts.begin() + 1);
  const int mine = counts[group.rank()];
  complete(
      group,
      [&] {
        TAPER_MPI_CALL(MPI_Allgatherv(in, mine, MPI_BYTE, out, counts.data(), starts.data(),
                                      MPI_BYTE, group.comm()));
      },
      [&](MPI_Request* request) {
        TAPER_MPI_CALL(MPI_Iallgatherv(in, mine, MPI_BYTE, out, counts.data(), starts.data(),
                                       MPI_BYTE, group.comm(), request));
      });
}

}  // namespace

void barrier(const Group& group) {
  complete(
      group, [&] { TAPER_MPI_CALL(MPI_Barrier(group.comm())); },
      [&](MPI_Request* request) { TAPER_MPI_CALL(MPI_Ibarrier(group.comm(), request)); });
}

void broadcast(const Group& group, std::byte* data, std::int64_t bytes, int root) {
  in_pieces(group, bytes, [&](std::int64_t at, int count) {
    complete(
        group, [&] { TAPER_MPI_CALL(MPI_Bcast(data + at, count, MPI_BYTE, root, group.comm())); },
        [&](MPI_Request* request) {
          TAPER_MPI_CALL(MPI_Ibcast(data + at, count, MPI_BYTE, root, group.comm(), request));
        });
  });
}

void all_gather(const Group& group, std::byte* out, const std::byte* in,
                std::span<const std::int64_t> bytes) {
  // Every branch depends on the sizes of all ranks, so all ranks take the same one.
  const std::vector<std::int64_t> at = offsets_of(bytes);
  if (at.back() > group.max_message_bytes()) {
    const int me = group.rank();
    if (bytes[me] > 0) std::memcpy(out + at[me], in, bytes[me]);
    for (int rank = 0; rank < group.size(); ++rank)
      broadcast(group, out + at[rank], bytes[rank], rank);
  } else if (std::all_of(bytes.begin(), bytes.end(), [&](auto b) { return b == bytes[0]; })) {
    all_gather_equal(group, out, in, static_cast<int>(bytes[0]));
  } else {
    all_gather_unequal(group, out, in, bytes);
  }
}

void all_reduce(const Group& group, void* data, std::int64_t count, std::size_t element_bytes,
                MPI_Datatype type, MPI_Op op) {
  const auto size = static_cast<std::int64_t>(element_bytes);
  const std::int64_t step = std::max<std::int64_t>(1, group.max_message_bytes() / size);
  for (std::int64_t at = 0; at < count; at += step) {
    void* piece = static_cast<std::byte*>(data) + at * size;
    const int n = static_cast<int>(std::min(step, count - at));
    complete(
        group,
        [&] { TAPER_MPI_CALL(MPI_Allreduce(MPI_IN_PLACE, piece, n, type, op, group.comm())); },
        [&](MPI_Request* request) {
          TAPER_MPI_CALL(MPI_Iallreduce(MPI_IN_PLACE, piece, n, type, op, group.comm(), request));
        });
  }
}

// Point to point, so that no count or displacement overflows and empty pieces cost nothing.
// Receives are posted first and the peers are met in rotated order, which spreads the load.
void all_to_all(const Group& group, std::byte* out, std::span<const std::int64_t> out_bytes,
                const std::byte* in, std::span<const std::int64_t> in_bytes) {
  const int n = group.size(), me = group.rank();
  TAPER_INSIST(out_bytes[me] == in_bytes[me], "all_to_all_v: rank "
                                                  << me << " sends itself " << in_bytes[me]
                                                  << " bytes, expects " << out_bytes[me]);
  const std::vector<std::int64_t> out_at = offsets_of(out_bytes), in_at = offsets_of(in_bytes);
  std::vector<MPI_Request> requests;
  requests.reserve(2 * static_cast<std::size_t>(n));
  for (int i = 1; i < n; ++i) {
    const int from = (me + n - i) % n;
    post_receive(group, out + out_at[from], out_bytes[from], from, requests);
  }
  for (int i = 1; i < n; ++i) {
    const int to = (me + i) % n;
    post_send(group, in + in_at[to], in_bytes[to], to, requests);
  }
  if (in_bytes[me] > 0) {
    std::memcpy(out + out_at[me], in + in_at[me], in_bytes[me]);
  }
  complete_all(group, requests);
}

}  // namespace taper::mpi
