// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/attention.hpp"
#include "kernels/gradient.hpp"
#include "model/Activations.hpp"
#include "model/ModelParallel.hpp"
#include "model/PackedModel.hpp"

namespace taper {

// What a layer call works with besides its weights: the ranks, the tokens, tables, and scratch
// memory.
struct LayerContext {
  const Exec& exec;
  const ModelParallel& parallel;
  const ModelConfig& config;
  const ActivationShape& shape;
  const TokenBatch& batch;
  ConstFloatMatrix rope_table;  // (positions, head_dim)
  float* partials;              // floats of partial sums: layer_scratch_floats()
};

// Floats that LayerContext::partials must hold for calls of up to `rows` rows.
std::int64_t layer_scratch_floats(const ModelParallel& parallel, int hidden, int rows);
// Of these, a result (rows, h) of project(), which works in the others.
FloatMatrix room_for_product(const LayerContext& context, const ModelParallel::RowParallel& by,
                             int rows);

// ModelParallel::multiply() in this memory. Collective over parallel.group().
void project(const LayerContext& context, const PackedMatrix& weights,
             const ModelParallel::RowParallel& by, FloatMatrix out, ConstFloatMatrix input);

// One decoder layer: attention over the pages (into which the new keys and values are written
// first), MLP, residuals. out (rows, h) may be x; `acts` receives what the backward pass needs.
// Collective over parallel.group().
void forward_layer(const LayerContext& context, const LayerWeights& weights,
                   const LayerPages& pages, const LayerActivations& acts, FloatMatrix out,
                   ConstFloatMatrix x);

// Writes keys and values of shared prefixes into the pages of all that share them.
void write_shared_prefixes(const LayerContext& context, const LayerPages& pages,
                           const LayerActivations& acts);

// Its halves. attend() writes the keys and values and gives `out` = residual + what attention makes
// of x; out may be either. apply_mlp() gives out = x + what the MLP makes of x; out may be x.
// Collective over parallel.group().
void attend(const LayerContext& context, const LayerWeights& weights, const LayerPages& pages,
            const LayerActivations& acts, FloatMatrix out, ConstFloatMatrix residual,
            ConstFloatMatrix x);
void apply_mlp(const LayerContext& context, const LayerWeights& weights,
               const LayerActivations& acts, FloatMatrix out, ConstFloatMatrix x);

// Gradients of one layer's parameters, local rows as stored.
struct LayerGradients {
  GradientView query, key_value, output, gate_up, down;
  GradientView input_norm, post_norm, query_norm, key_norm, query_bias, key_value_bias;
};

// Scratch of the backward pass, in rows of the largest call.
struct BackwardScratch {
  FloatMatrix wide;       // (rows, max(2 mlp, query)): d gate_up, then d attended
  FloatMatrix act;        // (rows, max(mlp, query)): d act, then d query
  FloatMatrix key_value;  // (rows, key_value)
  FloatMatrix hidden;     // (rows, h)
  FloatMatrix of_all;     // (rows, key_value), of each position of each sequence; only if prefixes
                          // are shared

  static std::int64_t floats(const ActivationShape& shape, int rows, bool shares_prefixes);
  BackwardScratch(const ActivationShape& shape, int rows, bool shares_prefixes, float* memory);
};

// dx (rows, h): in, the gradient by the layer's output; out, by its input x. Adds to `gradients`.
// Pages must hold the layer's keys and values (rewritten here from acts). Gradients of norms over
// heads are those of the local heads only; the others are complete. Collective over
// parallel.group().
void backward_layer(const LayerContext& context, const LayerWeights& weights,
                    const LayerPages& pages, const LayerActivations& acts,
                    const LayerGradients& gradients, const BackwardScratch& scratch, FloatMatrix dx,
                    ConstFloatMatrix x);

}  // namespace taper
