// SPDX-License-Identifier: Apache-2.0
//
// Rows of the embedding table, copied. Their gradient is add_rows (copy.hpp).
#pragma once

#include <cstdint>

#include "kernels/Views.hpp"
#include "kernels/product.hpp"

namespace taper {

// y (rows, h) = rows of the embedding table for ids in [vocab_begin, vocab_begin + table.columns);
// other rows are left alone. The table is packed as output columns (the vocabulary) of k = h
// inputs, like the output head it may be tied to.
template <class E>
void embed(const E& exec, MatrixView<float, E> y, VectorView<const std::int32_t, E> ids,
           const PackedMatrix& table, std::int32_t vocab_begin);

}  // namespace taper
