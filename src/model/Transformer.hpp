// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "model/Activations.hpp"
#include "model/Layer.hpp"
#include "model/LayerWindows.hpp"
#include "model/PackedModel.hpp"
#include "model/StepGraphs.hpp"

namespace taper {

// x (rows, h) = embedding rows of the ids, copied from the shards that own them. `workspace` has
// room for two times x. Collective over parallel.group().
void embed_tokens(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                  const TokenBatch& batch, FloatMatrix x, float* workspace);

// The forward pass without gradients: one set of activations serves all layers.
class InferencePass {
 public:
  // Floats of memory for calls of up to `rows` rows in one layout.
  static std::int64_t floats(const ParamTable& table, const ModelParallel& parallel, int rows,
                             Arithmetic arithmetic);

  // Works in `memory`, aligned to 64 bytes.
  InferencePass(const ParamTable& table, const ModelParallel& parallel, int rows,
                Arithmetic arithmetic, float* memory, ConstFloatMatrix rope_table);

  // Hidden states (rows, h) after the last layer, before the final norm; valid until the next call.
  // New keys and values are written to `pages`. Collective over parallel.group().
  FloatMatrix forward(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                      const TokenBatch& batch, const PagedLayers& pages);
  // The same for steps of decoding, whose launches are recorded: every segment has one token, or
  // none if its row only fills up, and the arrays of the batch and the pages stay where they are.
  FloatMatrix forward(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                      const TokenBatch& batch, const PagedLayers& pages, StepGraphs& graphs);
  // The same pass in parts: the embeddings, then layers on the stream before them, in its place. A
  // stream that is not that of the last call is first copied to stream().
  FloatMatrix embed(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                    const TokenBatch& batch) const;
  FloatMatrix stream(int rows) const;
  // `exec` with the memory of the pass for rounded operands, which is free between its calls.
  Exec with_rounding(const Exec& exec) const {
    return taper::with_rounding(exec, rounded_, rounded_floats_);
  }
  void apply_layers(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                    const TokenBatch& batch, const PagedLayers& pages, Range layers) const;
  // An approximation by windows of layers, which works in `window_memory` as well; `parallel` is
  // that of this rank alone. Collective over the group of the windows.
  FloatMatrix forward(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                      const TokenBatch& batch, const PagedLayers& pages,
                      const LayerWindows& windows, float* window_memory);

 private:
  LayerContext context(const Exec& exec, const ModelParallel& parallel, const TokenBatch& batch,
                       const ActivationShape& shape) const;
  Range all_layers() const { return {0, table_->config().layers}; }

  const ParamTable* table_;
  int rows_;
  float* hidden_;
  float* activations_;
  float* partials_;
  float* rounded_;  // memory for Rounding
  std::int64_t rounded_floats_;
  ConstFloatMatrix rope_table_;
};

}  // namespace taper
