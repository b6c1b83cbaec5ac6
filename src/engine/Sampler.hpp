// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/Response.hpp"
#include "engine/SamplingOptions.hpp"
#include "engine/StepExchange.hpp"
#include "model/TokenHead.hpp"

namespace taper {

// The key of the random number that draws token `position` of a sequence. The larger the number,
// the later in the order of ids is the token that the same probabilities give.
RandomKey token_key(const SamplingOptions& options, const ResponseId& id, int position);

// One token to draw: from row `row` of the logits, with its own random number.
struct Draw {
  int row = 0;
  ResponseId id;
  int position = 0;  // index of the new token within its sequence
};

struct DrawnToken {
  std::int32_t id = 0;
  float log_prob = 0.0f;   // of the full softmax at the temperature
  float kept_mass = 1.0f;  // probability left by the truncation
};

// Draws tokens by inverse transform over integer masses in order of ids, with one counter-based
// uniform number per token. The same for every tensor-parallel degree, batch composition and order
// of draws. Collective over parallel.group(), which is that of the exchange; all its ranks return
// the same tokens.
std::vector<DrawnToken> draw_tokens(const Exec& exec, const ModelParallel& parallel,
                                    const RowLogits& logits, int valid_ids,
                                    std::span<const Draw> draws, const SamplingOptions& options,
                                    StepExchange& exchange);

}  // namespace taper
