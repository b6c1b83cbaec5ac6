// SPDX-License-Identifier: Apache-2.0
#include "model/Activations.hpp"

namespace taper {

ActivationShape::ActivationShape(const ParamTable& table, const ModelShard& shard)
    : hidden(table.config().hidden),
      query(shard.heads().size() * table.head_pad()),
      key_value(shard.kv_heads().size() * 2 * table.head_pad()),
      mlp(shard.blocks().size() * kMlpBlock),
      heads(shard.heads().size()),
      kv_heads(shard.kv_heads().size()),
      qk_norm(table.config().qk_norm) {
  const int group = table.config().heads / table.config().kv_heads;
  attention = {heads,
               kv_heads,
               group,
               shard.heads().begin - shard.kv_heads().begin * group,
               table.config().head_dim,
               table.head_pad()};
}

template <class Take>
void LayerActivations::lay_out(int capacity, const Take& take) {
  const std::int64_t rows = capacity;
  normed1_ = take(rows * shape_.hidden);
  query_ = take(rows * shape_.query);
  key_value_ = take(rows * shape_.key_value);
  query_raw_ = shape_.qk_norm ? take(rows * shape_.query) : query_;
  key_value_raw_ = shape_.qk_norm ? take(rows * shape_.key_value) : key_value_;
  attended_ = take(rows * shape_.query);
  stats_ = take(rows * 2 * shape_.heads);
  mid_ = take(rows * shape_.hidden);
  normed2_ = take(rows * shape_.hidden);
  gate_up_ = take(rows * 2 * shape_.mlp);
  act_ = take(rows * shape_.mlp);
  inv1_ = take(rows);
  inv2_ = take(rows);
  query_inv_ = take(rows * shape_.heads);
  key_inv_ = take(rows * shape_.kv_heads);
}

LayerActivations::LayerActivations(const ActivationShape& shape, int capacity, float* memory)
    : shape_(shape) {
  float* next = memory;
  lay_out(capacity, [&](std::int64_t count) {
    float* taken = next;
    next += aligned_floats(count);
    return taken;
  });
}

std::int64_t LayerActivations::floats(const ActivationShape& shape, int capacity) {
  std::int64_t total = 0;
  LayerActivations measure(shape, 0, nullptr);
  measure.lay_out(capacity, [&](std::int64_t count) {
    total += aligned_floats(count);
    return static_cast<float*>(nullptr);
  });
  return total;
}

}  // namespace taper
