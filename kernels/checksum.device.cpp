// SPDX-License-Identifier: Apache-2.0
//
// A sum of words that depend on value and place, so that its terms may be added in any order.
#include "kernels/checksum.hpp"

#include "base/Error.hpp"
#include "kernels/detail/DeviceLaunch.hpp"

namespace taper {
namespace {

constexpr int kThreads = 256, kParts = 16;  // teams of a vector

KOKKOS_INLINE_FUNCTION std::uint64_t word_of(float value, std::int64_t place) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15ull;
  std::uint64_t word =
      (static_cast<std::uint64_t>(place) << 32 | Kokkos::bit_cast<std::uint32_t>(value)) * kOdd;
  word = (word ^ word >> 32) * kOdd;
  return word ^ word >> 29;
}

}  // namespace

template <>
void checksums<CudaExec>(const CudaExec& exec, VectorView<std::uint64_t, CudaExec> sums,
                         VectorView<const VectorView<const float, CudaExec>, CudaExec> vectors) {
  TAPER_EXPECT(sums.size() == vectors.size());
  const auto n = static_cast<std::int64_t>(sums.size());
  detail::device_for_each(
      "taper::checksums_begin", exec, n, KOKKOS_LAMBDA(const std::int64_t v) {
        sums(v) = static_cast<std::uint64_t>(vectors(v).size());
      });
  detail::device_for_teams(
      "taper::checksums", exec, n * kParts, kThreads, kThreads * sizeof(std::uint64_t),
      KOKKOS_LAMBDA(const detail::Team& team) {
        const int vector = team.league_rank() / kParts, p = team.league_rank() % kParts;
        const VectorView<const float, CudaExec> values = vectors(vector);
        const auto size = static_cast<std::int64_t>(values.size());
        detail::Scratch scratch(team);
        std::uint64_t* parts = scratch.take<std::uint64_t>(kThreads);
        std::uint64_t part = 0;
        detail::read_ahead(
            std::int64_t{p * kThreads + team.team_rank()}, size, std::int64_t{kParts * kThreads},
            [&](const std::int64_t i) { return values(i); },
            [&](const std::int64_t i, const float value) { part += word_of(value, i); });
        const std::uint64_t sum = detail::team_join(
            team, parts, part, [](const std::uint64_t x, const std::uint64_t y) { return x + y; });
        detail::once(team, [&] { Kokkos::atomic_add(&sums(vector), sum); });
      });
}

}  // namespace taper
