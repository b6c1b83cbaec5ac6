// SPDX-License-Identifier: Apache-2.0
#include "engine/Penalty.hpp"

namespace taper {

void RepetitionPenalty::apply(const ModelParallel& parallel, FloatMatrix logits,
                              std::span<const std::span<const std::int32_t>> tokens) {
  const Range vocab = parallel.shard().vocab();
  const std::int32_t begin = vocab.begin * kVocabBlock, end = vocab.end * kVocabBlock;
  seen_.resize(static_cast<std::size_t>(end - begin), 0);
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    if (++mark_ == 0) seen_.assign(seen_.size(), 0), mark_ = 1;
    for (const std::int32_t id : tokens[row]) {
      if (id < begin || id >= end || seen_[id - begin] == mark_) continue;
      seen_[id - begin] = mark_;
      float& logit = logits(row, static_cast<std::size_t>(id - begin));
      logit = logit < 0.0f ? logit * penalty_ : logit / penalty_;
    }
  }
}

}  // namespace taper
