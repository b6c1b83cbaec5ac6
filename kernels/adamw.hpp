// SPDX-License-Identifier: Apache-2.0
//
// The optimizer's step, each parameter on its own in the order of canonical/adamw.hpp, and the norm
// of gradients: 64 equal parts, each cut into blocks of 1024; 16 lane chains and one fixed tree in
// a block, then double sums over blocks and over parts, all ascending.
#pragma once

#include "kernels/Views.hpp"
#include "kernels/detail/Rows.hpp"

namespace taper {

using AdamWStep = detail::AdamWStep;  // the scalars of a step, described there

// One AdamW step on equally long vectors of parameters, first and second moments and gradients
// (scalars: AdamWStep).
template <class E>
void adamw(const E& exec, VectorView<float, E> parameters, VectorView<float, E> first,
           VectorView<float, E> second, VectorView<const float, E> gradients,
           const AdamWStep& step);

// Sum of squares in double, in one fixed order whatever the number of threads. NaN or inf if x
// has one.
template <class E>
double sum_squares(const E& exec, VectorView<const float, E> x);

}  // namespace taper
