// SPDX-License-Identifier: Apache-2.0
//
// The optimizer's step, each parameter on its own in the order of canonical/adamw.hpp, and sums of
// squares of gradients.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/Views.hpp"
#include "kernels/detail/Rows.hpp"
#include "kernels/gradient.hpp"

namespace taper {

using AdamWStep = detail::AdamWStep;  // the scalars of a step, described there

// One AdamW step on equally long vectors of parameters, first and second moments and gradients
// (scalars: AdamWStep).
template <class E>
void adamw(const E& exec, VectorView<float, E> parameters, VectorView<float, E> first,
           VectorView<float, E> second, const GradientView& gradients, const AdamWStep& step);

// sums[i] = the squares of elements [offsets[i], offsets[i + 1]), added in blocks of 1024 elements:
// 16 lane chains and one fixed tree in a block, then in double over blocks, ascending. NaN or inf
// if an element is.
template <class E>
void sum_squares(const E& exec, std::span<double> sums, const GradientView& x,
                 std::span<const std::int64_t> offsets);

}  // namespace taper
