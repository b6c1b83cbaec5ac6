// SPDX-License-Identifier: Apache-2.0
//
// Rewards that look at the form of a response, not at its answer. Time is linear in its length.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "reward/RewardOptions.hpp"

namespace taper {

// 1 if the markers stand in the response, each exactly once and in their order, else 0. Texts
// are compared byte by byte.
double score_format(const FormatOptions& options, std::string_view response);

// -per_token for each token above the target, not below the lowest.
double length_penalty(const LengthOptions& options, std::int64_t tokens);

// DAPO (Yu et al. 2025, arXiv 2503.14476, section 3.4): 0 up to `limit` - buffer tokens, then
// falling to -factor at `limit`, and on beyond it: min(-(tokens - (limit - buffer)) / buffer *
// factor, 0). The limit is that of a run, not 0.
double overlong_penalty(const OverlongOptions& options, std::int64_t tokens);

// -penalty * (1 - different n-grams / n-grams): the n-gram repetition penalty of Yeo et al. 2025
// (arXiv 2502.03373, section 4.3) as open-r1 gives it to a whole response, but over token ids
// instead of words. 0 if the response has no n-gram.
double repetition_penalty(const RepetitionOptions& options, std::span<const std::int32_t> tokens);

}  // namespace taper
