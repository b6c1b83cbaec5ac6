// SPDX-License-Identifier: Apache-2.0
//
// Collectives on contiguous host memory: spans, vectors, arrays and views of host memory of
// trivially copyable elements. On a group of one they are copies or nothing. `out` and `in` must
// not overlap unless stated. Every rank of the group must call the same collectives in the same
// order; audit builds check it. Ranks and roots are indices of the group.
//
// Sums of floating-point numbers are offered in a fixed order only (pairwise by bisection of the
// ranks of the group), so that the bits of the result do not depend on the library; see also
// TreeReduce.hpp. Those of Fixed are exact.
#pragma once

#include <mpi.h>

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/Error.hpp"
#include "base/Fixed.hpp"
#include "comm/DoublesOnly.hpp"
#include "comm/Group.hpp"
#include "comm/HostBuffer.hpp"

namespace taper {
namespace detail {

using Sizes = std::span<const std::int64_t>;

void all_gather(const Group& group, void* out, const void* in, std::int64_t bytes);
void all_gather_v(const Group& group, void* out, const void* in, Sizes counts, std::size_t size);
void broadcast(const Group& group, void* data, std::int64_t bytes, int root);
void all_to_all_v(const Group& group, void* out, Sizes out_counts, const void* in, Sizes in_counts,
                  std::size_t size);
void all_reduce(const Group& group, const char* name, void* data, std::int64_t count,
                std::size_t size, MPI_Datatype type, MPI_Op op);
template <class T>
void all_reduce_ordered_sum(const Group& group, std::span<T> data);
template <class T>
void reduce_scatter_ordered_sum(const Group& group, std::span<T> out, std::span<const T> in,
                                Sizes offsets);

template <class T>
MPI_Datatype mpi_type() {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? MPI_FLOAT : MPI_DOUBLE;
  if constexpr (std::is_signed_v<T>) return sizeof(T) == 4 ? MPI_INT32_T : MPI_INT64_T;
  return sizeof(T) == 4 ? MPI_UINT32_T : MPI_UINT64_T;
}

// What sums in the fixed order are of.
template <class T>
concept Summable = std::floating_point<T> || std::same_as<T, Fixed>;

template <HostBuffer Out, HostBuffer In>
constexpr void check_pair() {
  static_assert(std::is_same_v<BufferElement<Out>, BufferElement<In>>,
                "both buffers of a collective have the same element type");
}

template <HostBuffer Data>
void all_reduce(const Group& group, const char* name, Data& data, MPI_Op op) {
  using T = BufferElement<Data>;
  const auto span = host_span(data);
  all_reduce(group, name, span.data(), static_cast<std::int64_t>(span.size()), sizeof(T),
             mpi_type<T>(), op);
}

}  // namespace detail

// out = the equally long `in` of all ranks, in rank order. Collective over `group`.
template <HostBuffer Out, HostBuffer In>
void all_gather(const Group& group, Out&& out, const In& in) {
  detail::check_pair<Out, In>();
  const auto to = host_span(out);
  const auto from = host_span(in);
  TAPER_EXPECT(to.size() == from.size() * static_cast<std::size_t>(group.size()));
  detail::all_gather(group, to.data(), from.data(), static_cast<std::int64_t>(from.size_bytes()));
}

// out = the `in` of all ranks in rank order; counts[r] elements come from rank r. Collective over
// `group`.
template <HostBuffer Out, HostBuffer In>
void all_gather_v(const Group& group, Out&& out, const In& in,
                  std::span<const std::int64_t> counts) {
  detail::check_pair<Out, In>();
  const auto to = host_span(out);
  const auto from = host_span(in);
  TAPER_EXPECT(static_cast<int>(counts.size()) == group.size() &&
               counts[group.rank()] == static_cast<std::int64_t>(from.size()));
  detail::all_gather_v(group, to.data(), from.data(), counts, sizeof(BufferElement<In>));
}

// data of rank `root` on all ranks. Collective over `group`.
template <HostBuffer Data>
void broadcast(const Group& group, Data&& data, int root) {
  const auto span = host_span(data);
  detail::broadcast(group, span.data(), static_cast<std::int64_t>(span.size_bytes()), root);
}

// The vector of rank `root` on every rank, whatever its length there. Collective over `group`.
template <class T>
void broadcast_vector(const Group& group, std::vector<T>& values, int root) {
  std::vector<std::int64_t> size{static_cast<std::int64_t>(values.size())};
  broadcast(group, size, root);
  values.resize(static_cast<std::size_t>(size[0]));
  broadcast(group, values, root);
}

// Element-wise largest over the ranks, in place. Not for NaN. Collective over `group`.
template <HostBuffer Data>
void all_reduce_max(const Group& group, Data&& data) {
  detail::all_reduce(group, "all_reduce_max", data, MPI_MAX);
}

// Element-wise sum of integers, in place: exact in any order. Collective over `group`.
template <HostBuffer Data>
requires std::integral<BufferElement<Data>>
void all_reduce_sum(const Group& group, Data&& data) {
  detail::all_reduce(group, "all_reduce_sum", data, MPI_SUM);
}

// Element-wise sum of float, double or Fixed over the ranks in the fixed order, in place.
// Collective over `group`.
template <HostBuffer Data>
requires detail::Summable<BufferElement<Data>>
void all_reduce_ordered_sum(const Group& group, Data&& data) {
  detail::all_reduce_ordered_sum<BufferElement<Data>>(group, host_span(data));
}

// The sum of each member of the structs of doubles over the ranks in the fixed order, in place.
// Collective over `group`.
template <HostBuffer Data>
requires DoublesOnly<BufferElement<Data>>
void all_reduce_ordered_sum(const Group& group, Data&& data) {
  const auto structs = host_span(data);
  detail::all_reduce_ordered_sum<double>(
      group, {reinterpret_cast<double*>(structs.data()), structs.size_bytes() / sizeof(double)});
}
template <DoublesOnly Figures>
void all_reduce_ordered_sum(const Group& group, Figures& figures) {
  all_reduce_ordered_sum(group, std::span<Figures>(&figures, 1));
}

// out = elements [offsets[rank], offsets[rank + 1]) of the sum of `in` over the ranks, the same
// bits as all_reduce_ordered_sum. offsets: size() + 1 ascending entries from 0 to the length of
// `in`; scratch memory is bounded whatever that length. On a group of one `out` may be `in`.
// Collective over `group`.
template <HostBuffer Out, HostBuffer In>
requires detail::Summable<BufferElement<In>>
void reduce_scatter_ordered_sum(const Group& group, Out&& out, const In& in,
                                std::span<const std::int64_t> offsets) {
  detail::check_pair<Out, In>();
  detail::reduce_scatter_ordered_sum<BufferElement<In>>(group, host_span(out), host_span(in),
                                                        offsets);
}

// Rank r receives the r-th piece of `in` of each rank. in_counts[r] elements go to rank r,
// out_counts[r] come from it; both buffers hold their pieces in rank order without gaps. Collective
// over `group`.
template <HostBuffer Out, HostBuffer In>
void all_to_all_v(const Group& group, Out&& out, std::span<const std::int64_t> out_counts,
                  const In& in, std::span<const std::int64_t> in_counts) {
  detail::check_pair<Out, In>();
  detail::all_to_all_v(group, host_span(out).data(), out_counts, host_span(in).data(), in_counts,
                       sizeof(BufferElement<In>));
}

// Returns when all ranks have called it. Collective over `group`.
void barrier(const Group& group);

// The texts of all ranks in rank order, on every rank. For reports and checks, not for bulk data.
// Collective over `group`.
std::vector<std::string> all_gather_string(const Group& group, const std::string& text);

// The first of these texts that is not empty, on every rank; empty if all are. For problems, of
// which one is enough. Collective over `group`.
std::string first_text(const Group& group, const std::string& text);

// The text of rank `root` on every rank. Collective over `group`.
std::string broadcast_string(const Group& group, const std::string& text, int root);

}  // namespace taper
