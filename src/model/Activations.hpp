// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/Arena.hpp"
#include "kernels/Views.hpp"
#include "kernels/attention.hpp"
#include "model/ModelParallel.hpp"

namespace taper {

// First tokens that sequences of a batch have in common with one that stands before them: they are
// computed once, in the rows of that one.
struct SharedPrefixes {
  // Of each sequence that has one: the rows that hold the prefix, and its own pages.
  AttentionSegments<Exec> segments;
  // For each position of each sequence, sequence by sequence, the row in which it stands.
  VectorView<const std::int32_t, Exec> rows;
};

// Packed new tokens of one forward pass: rows of several sequences one after another.
struct TokenBatch {
  VectorView<const std::int32_t, Exec> ids;        // (rows)
  VectorView<const std::int32_t, Exec> positions;  // (rows)
  AttentionSegments<Exec> segments;
  VectorView<const std::int32_t, Exec> host_ids = ids;  // the same where the host reads them
  SharedPrefixes shared = {};

  int rows() const { return static_cast<int>(ids.size()); }
};

// Widths of the activations of one shard.
struct ActivationShape {
  // Columns per row: h, heads x pad, kv heads x 2 x pad, blocks x 64.
  int hidden, query, key_value, mlp;
  int heads, kv_heads;
  bool qk_norm;
  AttentionShape attention;

  ActivationShape(const ParamTable& table, const ModelShard& shard);
};

// The values of one layer, of up to `capacity` rows. For inference all layers share one set and
// `mid` is the residual stream itself; for training each layer has one, or shares one and is
// recomputed (activation checkpointing).
class LayerActivations {
 public:
  static std::int64_t floats(const ActivationShape& shape, int capacity);
  LayerActivations(const ActivationShape& shape, int capacity, float* memory);

  FloatMatrix normed1(int rows) const { return make_matrix(normed1_, rows, shape_.hidden); }
  FloatMatrix query_raw(int rows) const { return make_matrix(query_raw_, rows, shape_.query); }
  FloatMatrix query(int rows) const { return make_matrix(query_, rows, shape_.query); }
  FloatMatrix key_value_raw(int rows) const {
    return make_matrix(key_value_raw_, rows, shape_.key_value);
  }
  FloatMatrix key_value(int rows) const { return make_matrix(key_value_, rows, shape_.key_value); }
  FloatMatrix attended(int rows) const { return make_matrix(attended_, rows, shape_.query); }
  FloatMatrix stats(int rows) const { return make_matrix(stats_, rows, 2 * shape_.heads); }
  FloatMatrix mid(int rows) const { return make_matrix(mid_, rows, shape_.hidden); }
  FloatMatrix normed2(int rows) const { return make_matrix(normed2_, rows, shape_.hidden); }
  FloatMatrix gate_up(int rows) const { return make_matrix(gate_up_, rows, 2 * shape_.mlp); }
  FloatMatrix act(int rows) const { return make_matrix(act_, rows, shape_.mlp); }
  FloatVector inv1(int rows) const { return FloatVector(inv1_, rows); }
  FloatVector inv2(int rows) const { return FloatVector(inv2_, rows); }
  FloatVector query_inv(int rows) const {
    return FloatVector(query_inv_, std::size_t(rows) * shape_.heads);
  }
  FloatVector key_inv(int rows) const {
    return FloatVector(key_inv_, std::size_t(rows) * shape_.kv_heads);
  }

 private:
  template <class Take>
  void lay_out(int capacity, const Take& take);

  ActivationShape shape_;
  float *normed1_, *query_raw_, *query_, *key_value_raw_, *key_value_, *attended_, *stats_, *mid_,
      *normed2_, *gate_up_, *act_, *inv1_, *inv2_, *query_inv_, *key_inv_;
};

// Floats that an array of `count` takes if the next one is to begin at a multiple of 64 bytes.
constexpr std::int64_t aligned_floats(std::int64_t count) {
  return (count + 15) / 16 * 16;
}

// Floats of memory for with_rounding() in forward passes.
inline std::int64_t rounded_input_floats(const ActivationShape& shape, int rows,
                                         Arithmetic arithmetic) {
  if (!rounds_operands(arithmetic)) return 0;
  return rounded_rows_floats(rows, std::max({shape.hidden, shape.query, shape.mlp}));
}

// Flat view of a matrix.
inline FloatVector flat(FloatMatrix m) {
  return FloatVector(m.data(), m.extent(0) * m.extent(1));
}
inline ConstFloatVector flat(ConstFloatMatrix m) {
  return ConstFloatVector(m.data(), m.extent(0) * m.extent(1));
}

}  // namespace taper
