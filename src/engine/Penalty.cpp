// SPDX-License-Identifier: Apache-2.0
#include "engine/Penalty.hpp"

#include "kernels/Staging.hpp"
#include "kernels/logits.hpp"

namespace taper {

void RepetitionPenalty::apply(const Exec& exec, const ModelParallel& parallel, FloatMatrix logits,
                              std::span<const std::span<const std::int32_t>> tokens,
                              float penalty) {
  const Range vocab = parallel.shard().vocab();
  const std::int32_t begin = vocab.begin * kVocabBlock, end = vocab.end * kVocabBlock;
  seen_.resize(static_cast<std::size_t>(end - begin), 0);
  Staged<LogitPlace> places;
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    if (++mark_ == 0) {  // all marks are used up
      seen_.assign(seen_.size(), 0);
      mark_ = 1;
    }
    for (const std::int32_t id : tokens[row]) {
      if (id < begin || id >= end || seen_[id - begin] == mark_) continue;
      seen_[id - begin] = mark_;
      places.push_back({static_cast<std::int32_t>(row), id - begin});
    }
  }
  penalize_logits(exec, logits, staging_view(places), penalty);
  exec.fence();
}

}  // namespace taper
