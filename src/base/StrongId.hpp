// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>

namespace taper {

// An integer that cannot be mistaken for another kind of integer. Tag is any distinct type.
template <class Tag, class Int = std::int32_t>
struct StrongId {
  Int value{};

  constexpr StrongId() = default;
  constexpr explicit StrongId(Int v) : value(v) {}
  friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;
  friend std::ostream& operator<<(std::ostream& out, StrongId id) { return out << id.value; }
};

using Rank = StrongId<struct RankTag>;  // rank within the world
using SeqId = StrongId<struct SeqTag,
                       std::int64_t>;  // sequence within one generation: request * samples + sample
using BlockId = StrongId<struct BlockTag>;  // page-table entry of the KV cache

}  // namespace taper

template <class Tag, class Int>
struct std::hash<taper::StrongId<Tag, Int>> {
  std::size_t operator()(taper::StrongId<Tag, Int> id) const noexcept {
    return std::hash<Int>{}(id.value);
  }
};
