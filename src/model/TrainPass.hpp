// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/Gradients.hpp"
#include "model/TokenHead.hpp"
#include "model/Transformer.hpp"

namespace taper {

// Whether a layer's activations are kept for the backward pass or recomputed from its input.
enum class Checkpointing { kNo, kYes };

// Whole sequences packed into one micro-batch, each from its first token on.
struct PackedSequences {
  std::vector<std::int32_t> ids;  // (rows)
  std::vector<int> lengths;       // per sequence

  int rows() const { return static_cast<int>(ids.size()); }
};

struct TrainPassOptions {
  int max_rows = 2048;      // tokens per micro-batch
  int max_sequences = 256;  // sequences per micro-batch
  // Rows whose logits are held at a time. Each such chunk reads and writes the gradient of the head
  // once, so few rows cost bandwidth.
  int logit_rows = 512;
  Checkpointing checkpointing = Checkpointing::kYes;
};

// Forward and backward pass over packed sequences. The forward pass is the one of the rollout (same
// kernels, same page geometry), so log-probs have the same bits.
class TrainPass {
 public:
  static void plan(MemoryPlan& plan, const ParamTable& table, const ModelParallel& parallel,
                   const TrainPassOptions& options);
  TrainPass(const ParamTable& table, const ModelParallel& parallel, const TrainPassOptions& options,
            Arena& arena, ConstFloatMatrix rope_table);

  // Hidden states of all rows after the last layer; kept until the next call. Collective over
  // parallel.group().
  void forward(const HostExec& exec, const ModelView& view, const ModelParallel& parallel,
               const PackedSequences& sequences);

  // Log-probs of targets[i] given the tokens up to packed row rows[i], and the entropy there
  // (empty: not wanted). Collective over parallel.group().
  void log_probs(const HostExec& exec, const ModelView& view, const ModelParallel& parallel,
                 std::span<const int> rows, std::span<const std::int32_t> targets,
                 const HeadOptions& head, std::span<float> log_prob, std::span<float> entropy);

  // Hands the log-prob and entropy of each target to `loss` and adds the gradient of that loss to
  // `gradients`; no call of log_probs() is needed. Query and key norms get the part of the local
  // heads. Collective over parallel.group().
  void backward(const HostExec& exec, const ModelView& view, const ModelParallel& parallel,
                std::span<const int> rows, std::span<const std::int32_t> targets,
                const HeadOptions& head, const TokenLoss& loss, const Gradients& gradients);

 private:
  struct Sizes;
  FloatMatrix stream(
      int layer) const;  // the input of `layer`; of `layers`: the output of the last one
  LayerActivations activations(int layer) const;
  LayerContext context(const HostExec& exec, const ModelParallel& parallel) const;
  void set_batch(const PackedSequences& sequences);

  const ParamTable* table_;
  TrainPassOptions options_;
  ActivationShape shape_;
  ConstFloatMatrix rope_table_;
  float *streams_, *activations_, *scratch_, *gradient_stream_, *partials_;
  std::int64_t activation_floats_;
  PagedLayers pages_;
  TokenHead head_;
  // The current micro-batch.
  std::vector<std::int32_t> ids_, positions_, blocks_;
  std::vector<AttentionSegment> segments_;
  TokenBatch batch_;
};

}  // namespace taper
