// SPDX-License-Identifier: Apache-2.0
#include "comm/Collectives.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "comm/Audit.hpp"
#include "comm/mpi/Transport.hpp"
#include "shard/Shard.hpp"

namespace taper {
namespace detail {
namespace {

// Ordered sums travel in slices of this many bytes per rank, which bounds the scratch memory to
// ranks times that.
constexpr std::int64_t kSliceBytes = 256 * 1024;
// At most this many gathered bytes are summed by every rank itself, saving one exchange.
constexpr std::int64_t kGatherBytes = 64 * 1024;

std::byte* bytes_of(void* data) {
  return static_cast<std::byte*>(data);
}
const std::byte* bytes_of(const void* data) {
  return static_cast<const std::byte*>(data);
}

void copy(void* out, const void* in, std::int64_t bytes) {
  if (bytes > 0 && out != in) std::memmove(out, in, static_cast<std::size_t>(bytes));
}

std::vector<std::int64_t> scaled(Sizes counts, std::size_t size) {
  std::vector<std::int64_t> bytes(counts.begin(), counts.end());
  for (auto& b : bytes) b *= static_cast<std::int64_t>(size);
  return bytes;
}

// The sum of rows [begin, end) of (ranks, length) in row `begin`: lower half plus upper half,
// recursively.
template <class T>
void sum_rows(T* rows, int begin, int end, std::int64_t length) {
  if (end - begin < 2) return;
  const int middle = begin + (end - begin) / 2;
  sum_rows(rows, begin, middle, length);
  sum_rows(rows, middle, end, length);
  T* lower = rows + begin * length;
  const T* upper = rows + middle * length;
  for (std::int64_t i = 0; i < length; ++i) lower[i] = lower[i] + upper[i];
}

// Sum over the ranks of the slice of this rank, given starts and counts of every rank's slice in
// `in`. Left in the first `count of this rank` elements of scratch. Uncounted part of a collective.
template <class T>
void exchange_and_sum(const Group& group, const T* in, Sizes starts, Sizes counts,
                      std::vector<T>& scratch) {
  const auto n = static_cast<std::size_t>(group.size());
  const std::int64_t mine = counts[group.rank()];
  std::int64_t sent = 0;
  bool is_packed = true;
  for (std::size_t r = 0; r < n; sent += counts[r++]) is_packed &= starts[r] == starts[0] + sent;
  scratch.resize(static_cast<std::size_t>(mine * group.size() + (is_packed ? 0 : sent)));
  const T* packed = in + starts[0];
  if (!is_packed) {
    T* to = scratch.data() + mine * group.size();
    packed = to;
    for (std::size_t r = 0; r < n; to += counts[r++]) {
      copy(to, in + starts[r], counts[r] * static_cast<std::int64_t>(sizeof(T)));
    }
  }
  const std::vector<std::int64_t> my_bytes(n, mine * static_cast<std::int64_t>(sizeof(T)));
  mpi::all_to_all(group, bytes_of(scratch.data()), my_bytes, bytes_of(packed),
                  scaled(counts, sizeof(T)));
  sum_rows(scratch.data(), 0, group.size(), mine);
}

}  // namespace

void all_gather(const Group& group, void* out, const void* in, std::int64_t bytes) {
  if (group.is_null()) return copy(out, in, bytes);
  const CollectiveScope scope(group, "all_gather", bytes);
  const std::vector<std::int64_t> each(static_cast<std::size_t>(group.size()), bytes);
  mpi::all_gather(group, bytes_of(out), bytes_of(in), each);
}

void all_gather_v(const Group& group, void* out, const void* in, Sizes counts, std::size_t size) {
  const auto bytes = scaled(counts, size);
  if (group.is_null()) return copy(out, in, bytes[0]);
  const CollectiveScope scope(group, "all_gather_v",
                              std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}));
  mpi::all_gather(group, bytes_of(out), bytes_of(in), bytes);
}

void broadcast(const Group& group, void* data, std::int64_t bytes, int root) {
  TAPER_EXPECT(root >= 0 && root < group.size());
  if (group.is_null()) return;
  const CollectiveScope scope(group, "broadcast", bytes, root);
  mpi::broadcast(group, bytes_of(data), bytes, root);
}

void all_to_all_v(const Group& group, void* out, Sizes out_counts, const void* in, Sizes in_counts,
                  std::size_t size) {
  TAPER_EXPECT(static_cast<int>(out_counts.size()) == group.size() &&
               static_cast<int>(in_counts.size()) == group.size());
  const auto out_bytes = scaled(out_counts, size);
  const auto in_bytes = scaled(in_counts, size);
  if (group.is_null()) {
    TAPER_EXPECT(out_bytes == in_bytes);
    return copy(out, in, in_bytes[0]);
  }
  const CollectiveScope scope(group, "all_to_all_v", -1);
  mpi::all_to_all(group, bytes_of(out), out_bytes, bytes_of(in), in_bytes);
}

void all_reduce(const Group& group, const char* name, void* data, std::int64_t count,
                std::size_t size, MPI_Datatype type, MPI_Op op) {
  if (group.is_null()) return;
  const CollectiveScope scope(group, name, count);
  mpi::all_reduce(group, data, count, size, type, op);
}

template <class T>
void all_reduce_ordered_sum(const Group& group, std::span<T> data) {
  if (group.is_null()) return;
  const auto total = static_cast<std::int64_t>(data.size());
  const CollectiveScope scope(group, "all_reduce_ordered_sum", total);
  const int n = group.size();
  std::vector<T> scratch;
  if (total * n * static_cast<std::int64_t>(sizeof(T)) <= kGatherBytes) {
    scratch.resize(data.size() * static_cast<std::size_t>(n));
    const std::vector<std::int64_t> each(static_cast<std::size_t>(n),
                                         static_cast<std::int64_t>(data.size_bytes()));
    mpi::all_gather(group, bytes_of(scratch.data()), bytes_of(data.data()), each);
    sum_rows(scratch.data(), 0, n, total);
    return copy(data.data(), scratch.data(), static_cast<std::int64_t>(data.size_bytes()));
  }
  const std::int64_t slab = n * (kSliceBytes / static_cast<std::int64_t>(sizeof(T)));
  std::vector<std::int64_t> starts(static_cast<std::size_t>(n)), counts(starts.size());
  for (std::int64_t at = 0; at < total; at += slab) {
    for (int r = 0; r < n; ++r) {
      const Range slice = shard_range(static_cast<int>(std::min(slab, total - at)), n, r);
      starts[r] = at + slice.begin;
      counts[r] = slice.size();
    }
    exchange_and_sum(group, data.data(), starts, counts, scratch);
    mpi::all_gather(group, bytes_of(data.data() + at), bytes_of(scratch.data()),
                    scaled(counts, sizeof(T)));
  }
}

template <class T>
void reduce_scatter_ordered_sum(const Group& group, std::span<T> out, std::span<const T> in,
                                Sizes offsets) {
  TAPER_EXPECT(static_cast<int>(offsets.size()) == group.size() + 1 && offsets.front() == 0 &&
               std::is_sorted(offsets.begin(), offsets.end()) &&
               offsets.back() == static_cast<std::int64_t>(in.size()));
  const std::int64_t mine = offsets[group.rank() + 1] - offsets[group.rank()];
  TAPER_EXPECT(static_cast<std::int64_t>(out.size()) == mine);
  if (group.is_null()) {
    return copy(out.data(), in.data(), static_cast<std::int64_t>(in.size_bytes()));
  }
  const CollectiveScope scope(group, "reduce_scatter_ordered_sum", offsets.back());
  constexpr std::int64_t kStep = kSliceBytes / static_cast<std::int64_t>(sizeof(T));
  const int n = group.size();
  std::int64_t longest = 0;
  for (int r = 0; r < n; ++r) longest = std::max(longest, offsets[r + 1] - offsets[r]);
  std::vector<std::int64_t> starts(static_cast<std::size_t>(n)), counts(starts.size());
  std::vector<T> scratch;
  for (std::int64_t at = 0; at < longest; at += kStep) {
    for (int r = 0; r < n; ++r) {
      starts[r] = std::min(offsets[r] + at, offsets[r + 1]);
      counts[r] = std::min(kStep, offsets[r + 1] - starts[r]);
    }
    exchange_and_sum(group, in.data(), starts, counts, scratch);
    copy(out.data() + std::min(at, mine), scratch.data(),
         counts[group.rank()] * static_cast<std::int64_t>(sizeof(T)));
  }
}

template void all_reduce_ordered_sum(const Group&, std::span<float>);
template void all_reduce_ordered_sum(const Group&, std::span<double>);
template void all_reduce_ordered_sum(const Group&, std::span<Fixed>);
template void reduce_scatter_ordered_sum(const Group&, std::span<float>, std::span<const float>,
                                         Sizes);
template void reduce_scatter_ordered_sum(const Group&, std::span<double>, std::span<const double>,
                                         Sizes);
template void reduce_scatter_ordered_sum(const Group&, std::span<Fixed>, std::span<const Fixed>,
                                         Sizes);

}  // namespace detail

namespace {

// Splits the concatenated texts of all ranks.
std::vector<std::string> split(const std::string& all, const std::vector<std::int64_t>& lengths) {
  std::vector<std::string> texts;
  std::size_t at = 0;
  for (const std::int64_t length : lengths) {
    texts.push_back(all.substr(at, static_cast<std::size_t>(length)));
    at += static_cast<std::size_t>(length);
  }
  return texts;
}

// Lengths of the texts of all ranks; an uncounted part of the string collectives.
std::vector<std::int64_t> all_lengths(const Group& group, const std::string& text) {
  const auto mine = static_cast<std::int64_t>(text.size());
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(group.size()));
  const std::vector<std::int64_t> bytes(lengths.size(), sizeof(mine));
  mpi::all_gather(group, reinterpret_cast<std::byte*>(lengths.data()),
                  reinterpret_cast<const std::byte*>(&mine), bytes);
  return lengths;
}

}  // namespace

void barrier(const Group& group) {
  if (group.is_null()) return;
  const detail::CollectiveScope scope(group, "barrier", 0);
  mpi::barrier(group);
}

std::vector<std::string> all_gather_string(const Group& group, const std::string& text) {
  if (group.is_null()) return {text};
  const detail::CollectiveScope scope(group, "all_gather_string", -1);
  const auto lengths = all_lengths(group, text);
  const std::int64_t length = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  std::string all(static_cast<std::size_t>(length), '\0');
  mpi::all_gather(group, reinterpret_cast<std::byte*>(all.data()),
                  reinterpret_cast<const std::byte*>(text.data()), lengths);
  return split(all, lengths);
}

std::string first_text(const Group& group, const std::string& text) {
  for (const std::string& found : all_gather_string(group, text))
    if (!found.empty()) return found;
  return "";
}

std::string broadcast_string(const Group& group, const std::string& text, int root) {
  if (group.is_null()) return text;
  const detail::CollectiveScope scope(group, "broadcast_string", -1, root);
  auto length = static_cast<std::int64_t>(text.size());
  mpi::broadcast(group, reinterpret_cast<std::byte*>(&length), sizeof(length), root);
  std::string result = group.rank() == root ? text : std::string();
  result.resize(static_cast<std::size_t>(length));
  mpi::broadcast(group, reinterpret_cast<std::byte*>(result.data()), length, root);
  return result;
}

}  // namespace taper
