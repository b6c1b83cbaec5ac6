// SPDX-License-Identifier: Apache-2.0
//
// Times products in the shapes of decoding, prefill and gradients, whatever their arithmetic.
#pragma once

#include <string>

#include "kernels/ops/Data.hpp"
#include "kernels/ops/Op.hpp"

namespace taper::test {

// Weights of a vocabulary: 576 inputs, 49,152 columns, packed for products on `exec`.
PackedWeights vocabulary_weights(WeightType type, const Exec& exec);

// Times multiply() with them for 1 to 256 rows, under the name and the number of rows.
void time_multiply(const Stopwatch& watch, const std::string& name, const Exec& exec,
                   const PackedWeights& weights);

// Times accumulate_outer() under the name and its shape.
void time_outer(const Stopwatch& watch, const std::string& name, const Exec& exec);

}  // namespace taper::test
