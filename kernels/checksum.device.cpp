// SPDX-License-Identifier: Apache-2.0
//
// A sum of words that depend on value and place, so that its terms may be added in any order.
#include "kernels/checksum.hpp"

#include "base/Error.hpp"
#include "kernels/detail/DeviceLaunch.hpp"

namespace taper {
namespace {

constexpr int kThreads = 256;

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
  detail::device_for_teams(
      "taper::checksums", exec, static_cast<std::int64_t>(sums.size()), kThreads,
      kThreads * sizeof(std::uint64_t), KOKKOS_LAMBDA(const detail::Team& team) {
        const VectorView<const float, CudaExec> values = vectors(team.league_rank());
        const auto size = static_cast<std::int64_t>(values.size());
        detail::Scratch scratch(team);
        std::uint64_t* parts = scratch.take<std::uint64_t>(kThreads);
        std::uint64_t part = 0;
        for (std::int64_t i = team.team_rank(); i < size; i += team.team_size())
          part += word_of(values(i), i);
        parts[team.team_rank()] = part;
        team.team_barrier();
        detail::once(team, [&] {
          std::uint64_t sum = static_cast<std::uint64_t>(size);
          for (int t = 0; t < team.team_size(); ++t) sum += parts[t];
          sums(team.league_rank()) = sum;
        });
      });
}

}  // namespace taper
