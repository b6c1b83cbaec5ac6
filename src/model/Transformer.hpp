// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/Activations.hpp"
#include "model/Layer.hpp"
#include "model/PackedModel.hpp"

namespace taper {

// x (rows, h) = embedding rows of the ids, copied from the shards that own them. Collective over
// parallel.group().
void embed_tokens(const HostExec& exec, const ModelView& view, const ModelParallel& parallel,
                  VectorView<const std::int32_t, HostExec> ids, FloatMatrix x);

// The forward pass without gradients: one set of activations serves all layers.
class InferencePass {
 public:
  // Adds the memory for calls of up to `rows` rows to the plan, for the larger of the given
  // layouts.
  static void plan(MemoryPlan& plan, MemoryPhase phase, const ParamTable& table,
                   const ModelParallel& parallel, int rows);

  InferencePass(const ParamTable& table, const ModelParallel& parallel, int rows, Arena& arena,
                MemoryPhase phase, ConstFloatMatrix rope_table);

  int capacity() const { return rows_; }

  // Hidden states (rows, h) after the last layer, before the final norm; valid until the next call.
  // New keys and values are written to `pages`. Collective over parallel.group().
  FloatMatrix forward(const HostExec& exec, const ModelView& view, const ModelParallel& parallel,
                      const TokenBatch& batch, const PagedLayers& pages);

 private:
  const ParamTable* table_;
  int rows_;
  float* hidden_;
  float* activations_;
  float* partials_;
  ConstFloatMatrix rope_table_;
};

}  // namespace taper
