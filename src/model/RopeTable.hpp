// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/ModelConfig.hpp"

namespace taper {

// (positions, head_dim): cosines of the head_dim / 2 angles of a position, then sines. Frequencies,
// linear and llama3 scaling as in transformers: inv_freq and its product with the position are
// rounded to float.
std::vector<float> make_rope_table(const ModelConfig& config, int positions);

}  // namespace taper
