// SPDX-License-Identifier: Apache-2.0
#include "io/detail/RolloutExchange.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>

#include "base/Error.hpp"
#include "io/detail/MpiCall.hpp"

namespace taper::detail {

namespace {

struct Key {
  std::int64_t group, sample;
  friend auto operator<=>(const Key&, const Key&) = default;
};

// What stands in front of the arrays of a record on its way.
struct Header {
  std::int64_t row, group;
  double advantage;
  std::int32_t sample, prompt_length, finish, tokens, log_probs, kept_mass, rewards, layout;
};
static_assert(std::is_trivially_copyable_v<Header>);

using Bytes = std::vector<std::byte>;

template <class T>
void pack(Bytes& out, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void pack(Bytes& out, std::int64_t row, const RolloutRecord& record) {
  const auto count = [](const auto& values) { return static_cast<std::int32_t>(values.size()); };
  const Header header{row,
                      record.group,
                      record.advantage,
                      record.sample,
                      record.prompt_length,
                      static_cast<std::int32_t>(record.finish),
                      count(record.tokens),
                      count(record.log_probs),
                      count(record.kept_mass),
                      count(record.rewards),
                      count(record.layout)};
  pack(out, std::span(&header, 1));
  pack(out, std::span(record.tokens));
  pack(out, std::span(record.log_probs));
  pack(out, std::span(record.kept_mass));
  pack(out, std::span(record.rewards));
  pack(out, std::span(record.layout));
}

class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool done() const { return bytes_.empty(); }

  Header header() {
    Header header{};
    take(&header, sizeof header);
    return header;
  }

  template <class T>
  void values(std::vector<T>& out, std::int32_t count) {
    out.resize(static_cast<std::size_t>(count));
    take(out.data(), out.size() * sizeof(T));
  }

 private:
  void take(void* out, std::size_t size) {
    TAPER_EXPECT(size <= bytes_.size());
    if (size > 0) std::memcpy(out, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
  }

  std::span<const std::byte> bytes_;
};

// All keys, those of rank 0 first; begin is where those of this rank start.
std::vector<Key> gather_keys(MPI_Comm comm, std::span<const RolloutRecord> mine,
                             std::size_t& begin) {
  const auto ranks = static_cast<std::size_t>(comm_size(comm));
  const auto rank = static_cast<std::size_t>(comm_rank(comm));
  std::vector<std::int64_t> own;
  for (const auto& record : mine) own.insert(own.end(), {record.group, record.sample});
  int count = static_cast<int>(own.size());
  std::vector<int> counts(ranks), starts(ranks);
  TAPER_IO_MPI_CALL(MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, comm));
  std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0);
  std::vector<std::int64_t> all(static_cast<std::size_t>(starts.back() + counts.back()));
  TAPER_IO_MPI_CALL(MPI_Allgatherv(own.data(), count, MPI_INT64_T, all.data(), counts.data(),
                                   starts.data(), MPI_INT64_T, comm));
  begin = static_cast<std::size_t>(starts[rank]) / 2;
  std::vector<Key> keys;
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) keys.push_back({all[i], all[i + 1]});
  return keys;
}

// Sends out[r] to rank r and returns what the others sent, in rank order.
Bytes exchange(MPI_Comm comm, const std::vector<Bytes>& out) {
  const auto ranks = out.size();
  std::size_t total = 0;
  for (const auto& bytes : out) total += bytes.size();
  constexpr std::size_t kMost = std::numeric_limits<int>::max();
  throw_together(
      comm, total > kMost
                ? "the rollouts of one rank exceed 2 GiB (too much for one file of an iteration) "
                  "use more ranks or fewer samples"
                : "");
  std::vector<int> send_counts(ranks), send_starts(ranks), counts(ranks), starts(ranks);
  Bytes sent;
  for (std::size_t r = 0; r < ranks; ++r) {
    send_counts[r] = static_cast<int>(out[r].size());
    send_starts[r] = static_cast<int>(sent.size());
    sent.insert(sent.end(), out[r].begin(), out[r].end());
  }
  TAPER_IO_MPI_CALL(MPI_Alltoall(send_counts.data(), 1, MPI_INT, counts.data(), 1, MPI_INT, comm));
  const auto incoming = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  throw_together(comm, incoming > static_cast<std::int64_t>(kMost)
                           ? "the rollouts of one rank exceed 2 GiB (too much for one file of an "
                             "iteration) use more "
                             "ranks or fewer samples"
                           : "");
  std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0);
  Bytes received(static_cast<std::size_t>(incoming));
  TAPER_IO_MPI_CALL(MPI_Alltoallv(sent.data(), send_counts.data(), send_starts.data(), MPI_BYTE,
                                  received.data(), counts.data(), starts.data(), MPI_BYTE, comm));
  return received;
}

// Global row of each key.
std::vector<std::int64_t> rank_keys(const std::vector<Key>& keys) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  std::vector<std::int64_t> row(keys.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    row[order[i]] = static_cast<std::int64_t>(i);
    const Key& key = keys[order[i]];
    TAPER_INSIST(i == 0 || keys[order[i - 1]] != key, "rollouts: sample "
                                                            << key.sample << " of group "
                                                            << key.group << " was brought twice");
  }
  return row;
}

std::int64_t payload(const RolloutRecord& record) {
  const auto bytes = [](const auto& values) { return values.size() * sizeof(values[0]); };
  return static_cast<std::int64_t>(sizeof(Header) + bytes(record.tokens) + bytes(record.log_probs) +
                                   bytes(record.kept_mass) + bytes(record.rewards) +
                                   bytes(record.layout));
}

// How many ranks write.
std::int64_t choose_writers(MPI_Comm comm, std::span<const RolloutRecord> mine,
                            std::int64_t bytes_per_writer) {
  std::int64_t own = 0, total = 0;
  for (const auto& record : mine) own += payload(record);
  TAPER_IO_MPI_CALL(MPI_Allreduce(&own, &total, 1, MPI_INT64_T, MPI_SUM, comm));
  return std::clamp<std::int64_t>(total / bytes_per_writer, 1, comm_size(comm));
}

void unpack(std::span<const std::byte> bytes, RolloutShare& share) {
  for (Unpacker unpacker(bytes); !unpacker.done();) {
    const Header header = unpacker.header();
    auto& record = share.records[static_cast<std::size_t>(header.row - share.first_row)];
    record.group = header.group;
    record.sample = header.sample;
    record.prompt_length = header.prompt_length;
    record.advantage = header.advantage;
    record.finish = static_cast<FinishCode>(header.finish);
    unpacker.values(record.tokens, header.tokens);
    unpacker.values(record.log_probs, header.log_probs);
    unpacker.values(record.kept_mass, header.kept_mass);
    unpacker.values(record.rewards, header.rewards);
    unpacker.values(record.layout, header.layout);
  }
}

}  // namespace

RolloutShare to_global_order(MPI_Comm comm, std::span<const RolloutRecord> mine,
                             std::int64_t bytes_per_writer) {
  const std::int64_t ranks = comm_size(comm);
  const std::int64_t writers = choose_writers(comm, mine, bytes_per_writer);
  std::size_t begin = 0;
  const auto keys = gather_keys(comm, mine, begin);
  const auto rows = rank_keys(keys);  // throws alike on all ranks
  const auto total = static_cast<std::int64_t>(keys.size());
  const auto first_of = [&](std::int64_t writer) { return writer * total / writers; };
  const auto rank_of = [&](std::int64_t writer) { return writer * ranks / writers; };

  std::vector<Bytes> out(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const auto row = rows[begin + i];
    auto writer = row * writers / total;
    while (first_of(writer + 1) <= row) ++writer;
    pack(out[static_cast<std::size_t>(rank_of(writer))], row, mine[i]);
  }
  const Bytes received = exchange(comm, out);

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
