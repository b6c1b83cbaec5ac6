// SPDX-License-Identifier: Apache-2.0
//
// The weights that a model begins with if no file has them: pure functions of a seed, so the
// same on any number of ranks.
#pragma once

#include <cstdint>
#include <span>

#include "model/ParamTable.hpp"

namespace taper {

// Of one piece, with its padding. Norms are one; other weights are normal with a deviation of 0.02,
// that of GPT-2 and of transformers (initializer_range) for all families here, and smaller by
// sqrt(2 layers) where they add to the residual stream, whose variance would else grow with the
// number of layers. The scalar head is that of draw_score().
void draw_piece(const ParamTable& table, int piece, std::uint64_t seed, std::span<float> weights);

// For a scalar head that starts on a language model: normal, with a deviation of 1 / (h + 1), so
// that all first values are near zero.
void draw_score(std::uint64_t seed, std::span<float> weights);

}  // namespace taper
