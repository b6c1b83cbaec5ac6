// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/Views.hpp"
#include "model/ModelParallel.hpp"

namespace taper {

// The repetition penalty of transformers (RepetitionPenaltyLogitsProcessor): the logit of each id
// that a sequence has, in its prompt or its response, is divided by the penalty if it is
// positive and multiplied by it if it is negative; once, however often the id is there. Element
// by element, so the same for every tensor-parallel degree. One object serves all steps in all
// layouts: it keeps its marks, so that no step clears an array of the size of the vocabulary.
class RepetitionPenalty {
 public:
  // logits: (rows, local vocabulary) of this rank's shard, as the model gives them, before the
  // temperature; tokens[i] is the sequence of row i; penalty: above 0, and 1 changes nothing.
  void apply(const Exec& exec, const ModelParallel& parallel, FloatMatrix logits,
             std::span<const std::span<const std::int32_t>> tokens, float penalty);

 private:
  std::vector<std::uint32_t> seen_;  // by local id: the last mark that it got
  std::uint32_t mark_ = 0;
};

}  // namespace taper
