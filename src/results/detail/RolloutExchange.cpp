// SPDX-License-Identifier: Apache-2.0
#include "results/detail/RolloutExchange.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>

#include "base/Error.hpp"
#include "base/Packing.hpp"
#include "io/MpiCall.hpp"

namespace taper::detail {

namespace {

// A record on its way, with its row in the global order.
void pack(std::string& bytes, std::int64_t row, const RolloutRecord& record) {
  ByteWriter out(bytes);
  out.value(row);
  taper::pack(out, record);
}

void unpack(std::string_view bytes, RolloutShare& share) {
  for (ByteReader in(bytes); !in.done();) {
    const auto row = in.value<std::int64_t>();
    taper::unpack(in, share.records.at(static_cast<std::size_t>(row - share.first_row)));
  }
}

// All ids, those of rank 0 first; begin is where those of this rank start.
std::vector<ResponseId> gather_ids(MPI_Comm comm, std::span<const RolloutRecord> mine,
                                   std::size_t& begin) {
  const auto ranks = static_cast<std::size_t>(comm_size(comm));
  const auto rank = static_cast<std::size_t>(comm_rank(comm));
  std::vector<std::int64_t> own;
  for (const auto& record : mine) own.insert(own.end(), {record.id.prompt, record.id.sample});
  int count = static_cast<int>(own.size());
  std::vector<int> counts(ranks), starts(ranks);
  TAPER_IO_MPI_CALL(MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, comm));
  std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0);
  std::vector<std::int64_t> all(static_cast<std::size_t>(starts.back() + counts.back()));
  TAPER_IO_MPI_CALL(MPI_Allgatherv(own.data(), count, MPI_INT64_T, all.data(), counts.data(),
                                   starts.data(), MPI_INT64_T, comm));
  begin = static_cast<std::size_t>(starts[rank]) / 2;
  std::vector<ResponseId> ids;
  for (std::size_t i = 0; i + 1 < all.size(); i += 2)
    ids.push_back({all[i], static_cast<int>(all[i + 1])});
  return ids;
}

// Sends out[r] to rank r and returns what the others sent, in rank order.
std::string all_to_all_texts(MPI_Comm comm, const std::vector<std::string>& out) {
  const auto ranks = out.size();
  std::size_t total = 0;
  for (const auto& bytes : out) total += bytes.size();
  constexpr std::size_t kMost = std::numeric_limits<int>::max();
  const std::string too_much =
      "the rollouts of one rank exceed 2 GiB (too much for the file of an iteration); use more "
      "ranks or fewer samples";
  throw_together(comm, total > kMost ? too_much : "");
  std::vector<int> send_counts(ranks), send_starts(ranks), counts(ranks), starts(ranks);
  std::string sent;
  for (std::size_t r = 0; r < ranks; ++r) {
    send_counts[r] = static_cast<int>(out[r].size());
    send_starts[r] = static_cast<int>(sent.size());
    sent += out[r];
  }
  TAPER_IO_MPI_CALL(MPI_Alltoall(send_counts.data(), 1, MPI_INT, counts.data(), 1, MPI_INT, comm));
  const auto incoming = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  throw_together(comm, incoming > static_cast<std::int64_t>(kMost) ? too_much : "");
  std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0);
  std::string received(static_cast<std::size_t>(incoming), '\0');
  TAPER_IO_MPI_CALL(MPI_Alltoallv(sent.data(), send_counts.data(), send_starts.data(), MPI_BYTE,
                                  received.data(), counts.data(), starts.data(), MPI_BYTE, comm));
  return received;
}

// Global row of each id.
std::vector<std::int64_t> rows_of(const std::vector<ResponseId>& ids) {
  std::vector<std::size_t> order(ids.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return ids[a] < ids[b]; });
  std::vector<std::int64_t> row(ids.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    row[order[i]] = static_cast<std::int64_t>(i);
    const ResponseId& id = ids[order[i]];
    TAPER_INSIST(i == 0 || ids[order[i - 1]] != id, "rollouts: sample " << id.sample << " of group "
                                                                        << id.prompt
                                                                        << " was brought twice");
  }
  return row;
}

// Bytes that a record brings to its file.
std::int64_t payload(const RolloutRecord& record) {
  constexpr std::size_t kScalars = 56;  // of its row, lengths and offsets
  std::size_t bytes = kScalars;
  const auto add = [&](const auto& field) {
    if constexpr (requires { field.data(); }) bytes += field.size() * sizeof(field[0]);
  };
  std::apply([&](const auto&... field) { (add(field), ...); }, RolloutRecord::fields(record));
  return static_cast<std::int64_t>(bytes);
}

// How many ranks write.
std::int64_t choose_writers(MPI_Comm comm, std::span<const RolloutRecord> mine,
                            std::int64_t bytes_per_writer) {
  std::int64_t own = 0, total = 0;
  for (const auto& record : mine) own += payload(record);
  TAPER_IO_MPI_CALL(MPI_Allreduce(&own, &total, 1, MPI_INT64_T, MPI_SUM, comm));
  return std::clamp<std::int64_t>(total / bytes_per_writer, 1, comm_size(comm));
}

}  // namespace

RolloutShare to_global_order(MPI_Comm comm, std::span<const RolloutRecord> mine,
                             std::int64_t bytes_per_writer) {
  const std::int64_t ranks = comm_size(comm);
  const std::int64_t writers = choose_writers(comm, mine, bytes_per_writer);
  std::size_t begin = 0;
  const auto ids = gather_ids(comm, mine, begin);
  const auto rows = rows_of(ids);  // throws alike on all ranks
  const auto total = static_cast<std::int64_t>(ids.size());
  const auto first_of = [&](std::int64_t writer) { return writer * total / writers; };
  const auto rank_of = [&](std::int64_t writer) { return writer * ranks / writers; };

  std::vector<std::string> out(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const auto row = rows[begin + i];
    auto writer = row * writers / total;
    while (first_of(writer + 1) <= row) ++writer;
    pack(out[static_cast<std::size_t>(rank_of(writer))], row, mine[i]);
  }
  const std::string received = all_to_all_texts(comm, out);

  RolloutShare share;
  share.writers = static_cast<int>(writers);
  share.total_rows = total;
  for (std::int64_t writer = 0; writer < writers; ++writer) {
    if (rank_of(writer) != comm_rank(comm)) continue;
    share.writer = static_cast<int>(writer);
    share.first_row = first_of(writer);
    share.records.resize(static_cast<std::size_t>(first_of(writer + 1) - first_of(writer)));
  }
  unpack(received, share);
  return share;
}

}  // namespace taper::detail
