// SPDX-License-Identifier: Apache-2.0
#include "draft/Acceptance.hpp"

namespace taper {

const char* to_string(DraftSource source) {
  constexpr std::array<const char*, kDraftSources> kNames{"self", "prompt", "run", "model",
                                                          "journal"};
  return kNames[static_cast<std::size_t>(source)];
}

GuessKind GuessKind::of_model(float log_prob) {
  GuessKind kind{DraftSource::kModel, 0, Evidence::kProbability};
  while (kind.level + 1 < kLevels && log_prob >= kLogProbs[kind.level + 1]) ++kind.level;
  return kind;
}

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

RightOf Acceptance::of(const GuessKind& kind) const {
  return {counts_[kind.index()], counts_[GuessKind::kKinds + kind.index()]};
}

RightOf Acceptance::of(DraftSource source) const {
  RightOf sum;
  const int begin = GuessKind{source, 0, Evidence{}}.index();
  for (int k = begin; k < begin + GuessKind::kLevels * kEvidences; ++k) {
    sum.right += counts_[k];
    sum.all += counts_[GuessKind::kKinds + k];
  }
  return sum;
}

}  // namespace taper
