// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/Staging.hpp"
#include "kernels/Views.hpp"
#include "kernels/logits.hpp"
#include "model/ModelParallel.hpp"
#include "model/PackedModel.hpp"

namespace taper {

// Which ids can be sampled or scored, and at which temperature.
struct HeadOptions {
  int valid_ids = 0;         // ids of the tokenizer; the padded rows beyond have probability zero
  float temperature = 1.0f;  // log-probs are of softmax(logits / temperature)
};

// Slopes of a loss by the log-prob of a token and by the entropy of the distribution it is drawn
// from.
struct TokenSlope {
  float by_log_prob = 0.0f;
  float by_entropy = 0.0f;
};

// The slopes of token i (index into the rows asked for) from its log-prob and entropy. Called
// once per token in ascending order, with the same values on all ranks of the group.
using TokenLoss = std::function<TokenSlope(std::size_t i, float log_prob, float entropy)>;

// Logits of some rows over the local shard of the vocabulary with their softmax statistics over all
// shards.
struct RowLogits {
  FloatMatrix logits;                    // (rows, local vocabulary), divided by the temperature
  FloatVector max;                       // (rows) over all ids
  Staged<float> host_max;                // the same for the host
  std::vector<std::int64_t> mass;        // (rows) over all ids
  std::vector<std::int64_t> shard_mass;  // (shards, rows)
};

// The output head on selected rows of hidden states: final norm, logits in chunks of rows,
// statistics. Never holds rows x vocabulary for more than one chunk.
class TokenHead {
 public:
  static std::int64_t floats(const ParamTable& table, const ModelParallel& parallel,
                             int chunk_rows);

  // Works in `memory`; chunk_rows is the most rows whose logits are held at a time.
  TokenHead(const ParamTable& table, const ModelParallel& parallel, int chunk_rows, float* memory);

  // Logits of the rows `rows` (at most chunk_rows) of hidden. `edit` may change those of the local
  // shard, as the model gives them, before the temperature. Collective over parallel.group().
  RowLogits logits(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                   ConstFloatMatrix hidden, std::span<const int> rows, const HeadOptions& options,
                   const std::function<void(FloatMatrix)>& edit = {});

  // log_prob[i] = log-prob of targets[i] given hidden row rows[i]; entropy[i] of that distribution
  // (empty: not wanted). Collective over parallel.group().
  void log_probs(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                 ConstFloatMatrix hidden, std::span<const int> rows,
                 std::span<const std::int32_t> targets, const HeadOptions& options,
                 std::span<float> log_prob, std::span<float> entropy);

  // Log-probs and entropies as above, handed to `loss`, whose gradient is added to d_hidden (like
  // hidden), to the head's weights (local vocabulary rows, h) and to the final norm. A token's
  // slopes need no other token, so each chunk of logits is computed once for both. With an empty
  // d_hidden there is the gradient of the weights alone, and d_final_norm is left as it is.
  // Collective over parallel.group().
  void backward(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                ConstFloatMatrix hidden, std::span<const int> rows,
                std::span<const std::int32_t> targets, const HeadOptions& options,
                const TokenLoss& loss, FloatMatrix d_hidden, const GradientView& d_head,
                const GradientView& d_final_norm);

 private:
  // Log-probs and entropies (empty: not wanted) of the rows of `row_logits`. Collective over
  // parallel.group().
  void chunk_log_probs(const Exec& exec, const ModelParallel& parallel, const RowLogits& row_logits,
                       std::span<const std::int32_t> targets, int valid, std::span<float> log_prob,
                       std::span<float> entropy);

  struct SumRoom;

  const ParamTable* table_;
  int chunk_rows_;
  // (chunk, h) x 2, (chunk, local vocabulary), (chunk) x 2
  float *gathered_, *normed_, *logits_, *max_, *inv_;
  float *partials_, *workspace_;
};

}  // namespace taper
