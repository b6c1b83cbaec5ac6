// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "model/Gradients.hpp"
#include "model/PackedBatch.hpp"
#include "model/ScalarHead.hpp"
#include "model/TokenHead.hpp"
#include "model/Transformer.hpp"

namespace taper {

// Whether a layer's activations are kept for the backward pass or recomputed from its input.
enum class Checkpointing { kNo, kYes };

struct TrainPassOptions {
  int max_rows = 2048;      // tokens per micro-batch
  int max_sequences = 256;  // sequences per micro-batch
  // Of micro-batches that do not depend on the number of ranks (bundles, rl/MicroBatch.hpp); 0:
  // they are as large as there is room.
  int bundle_tokens = 0;
  // Whether a bundle has samples of one prompt only, so that it is known when these are there.
  bool bundles_of_prompts = false;
  // Whether sequences may share their first tokens (PackedSequences::shared).
  bool shares_prefixes = false;
  // Rows whose logits (or normed states, for a scalar head) are held at a time; of logits four
  // times as many on tensor cores, beside whose products bandwidth counts for more. Each such chunk
  // reads and writes the gradient of the head once, so few rows cost bandwidth, and its sums are
  // rounded once, so their number is one of those that decide bits.
  int logit_rows = 512;
  Checkpointing checkpointing = Checkpointing::kYes;
  Precision precision;
  GradientType gradients = GradientType::kF32;  // of the sums that backward passes add to
  MemoryOwner owner = {};                       // of the memory, nothing of which outlives a call
};

// Forward and backward pass over packed sequences. The forward pass is the one of the rollout (same
// kernels, same page geometry), so log-probs have the same bits. A model gives tokens or scalars:
// each has its own pair of calls after forward().
class TrainPass {
 public:
  static void add_memory(MemoryPlan& plan, const ParamTable& table, const ModelParallel& parallel,
                         const TrainPassOptions& options);
  TrainPass(const ParamTable& table, const ModelParallel& parallel, const TrainPassOptions& options,
            Arena& arena, ConstFloatMatrix rope_table);

  // Hidden states of all rows after the last layer; kept until the next call. Collective over
  // parallel.group().
  void forward(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
               const PackedSequences& sequences);

  // Log-probs of targets[i] given the tokens up to packed row rows[i], and the entropy there
  // (empty: not wanted). Collective over parallel.group().
  void log_probs(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                 std::span<const int> rows, std::span<const std::int32_t> targets,
                 const HeadOptions& head, std::span<float> log_prob, std::span<float> entropy);

  // Calls `loss` with the log-prob and entropy of each target and adds the gradient of that loss to
  // `gradients`; needs forward(), but not log_probs(). Query and key norms get the part of the
  // local heads (Gradients::sum_shared). Collective over parallel.group().
  void backward(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                std::span<const int> rows, std::span<const std::int32_t> targets,
                const HeadOptions& head, const TokenLoss& loss, const Gradients& gradients);

  // Of a model with a scalar head: value[i] at packed row rows[i], the same bits on all ranks of
  // the group. Not collective.
  void values(const Exec& exec, const ModelView& view, std::span<const int> rows,
              std::span<float> value) const;

  // Adds the gradient of a loss whose slope by the value at row rows[i] is slopes[i] to
  // `gradients`; the slopes are the same on all ranks of the group. Collective over
  // parallel.group().
  void backward_values(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                       std::span<const int> rows, std::span<const float> slopes,
                       const Gradients& gradients);

  // out (n, h) = the stream that enters `layer` in the last forward(), at packed rows `rows`. Not
  // collective.
  void copy_stream(const Exec& exec, int layer, std::span<const std::int32_t> rows,
                   FloatMatrix out) const;

 private:
  struct Sizes;
  // (rows, h): the input of `layer`; for the number of layers, the output of the last one.
  FloatMatrix stream(int layer) const;
  LayerActivations activations(int layer) const;
  LayerContext context(const Exec& exec, const ModelParallel& parallel) const;
  // With memory for the operands of products.
  Exec with_rounding(const Exec& exec) const;
  void set_batch(const Exec& exec, const PackedSequences& sequences);
  // The gradient by the hidden states of the batch, set to zero.
  FloatMatrix clear_gradient_stream(const Exec& exec) const;
  // From the gradient by the last hidden states to that of all layers and the embedding. Collective
  // over parallel.group().
  void backward_layers(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                       FloatMatrix dx, const Gradients& gradients);

  const ParamTable* table_;
  TrainPassOptions options_;
  ActivationShape shape_;
  ConstFloatMatrix rope_table_;
  float *streams_, *activations_, *scratch_, *gradient_stream_, *partials_, *rounded_;
  std::int64_t activation_floats_, rounded_floats_;
  LayerPages pages_;
  // One of the two.
  std::optional<TokenHead> head_;
  std::optional<ScalarHead> scalar_;
  std::unique_ptr<PackedBatch> batch_;  // the current micro-batch
};

}  // namespace taper
