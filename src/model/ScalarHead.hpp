// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "kernels/Views.hpp"
#include "model/PackedModel.hpp"

namespace taper {

// The scalar head on selected rows of hidden states: final norm, then one value per row (a reward,
// or the value of a state). Every rank of a tensor-parallel group holds whole hidden states and all
// weights of this head, so each computes all values itself, with the same bits and without
// messages.
//
// A value is one sum over the columns, ascending, in double: it depends on nothing but its row.
class ScalarHead {
 public:
  static std::int64_t floats(const ParamTable& table, int chunk_rows);

  // Works in `memory`; chunk_rows rows are normed at a time.
  ScalarHead(const ParamTable& table, int chunk_rows, float* memory);

  // value[i] of hidden row rows[i]. Throws Error if one is not finite.
  void values(const Exec& exec, const ModelView& view, ConstFloatMatrix hidden,
              std::span<const int> rows, std::span<float> value) const;

  // Adds the gradient of a loss with the slope slopes[i] by the value of row rows[i] to d_hidden
  // (like hidden), d_score and d_final_norm (h); the same bits in chunks of any size.
  void backward(const Exec& exec, const ModelView& view, ConstFloatMatrix hidden,
                std::span<const int> rows, std::span<const float> slopes, FloatMatrix d_hidden,
                const GradientView& d_score, const GradientView& d_final_norm) const;

 private:
  FloatMatrix norm_rows(const Exec& exec, const ModelView& view, ConstFloatMatrix hidden,
                        std::span<const int> rows) const;

  int hidden_;
  float eps_;
  int chunk_rows_;
  float *gathered_, *normed_, *inv_;  // (chunk, h) x 2, (chunk)
};

}  // namespace taper
