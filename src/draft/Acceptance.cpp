// SPDX-License-Identifier: Apache-2.0
#include "draft/Acceptance.hpp"

namespace taper {

void Acceptance::count(const GuessKind& kind, bool right) {
  counts_[kind.index()] += right ? 1 : 0;
  ++counts_[GuessKind::kKinds + kind.index()];
}

void Acceptance::add(const Acceptance& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
}

void Acceptance::fade() {
  constexpr std::int64_t kMemory = 4096;
  for (int k = 0; k < GuessKind::kKinds; ++k)
    while (counts_[GuessKind::kKinds + k] > kMemory) {
      counts_[k] /= 2;
      counts_[GuessKind::kKinds + k] /= 2;
    }
}

std::array<std::int64_t, 2> Acceptance::of(const GuessKind& kind) const {
  return {counts_[kind.index()], counts_[GuessKind::kKinds + kind.index()]};
}

}  // namespace taper
