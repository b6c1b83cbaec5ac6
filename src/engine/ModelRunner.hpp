// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/Arena.hpp"
#include "engine/Penalty.hpp"
#include "engine/Sampler.hpp"
#include "engine/SamplingOptions.hpp"
#include "engine/Scheduler.hpp"
#include "engine/StepExchange.hpp"
#include "kernels/Staging.hpp"
#include "kvcache/BlockPool.hpp"
#include "model/DeviceBatch.hpp"
#include "model/Transformer.hpp"

namespace taper {

struct EngineOptions {
  SchedulerOptions scheduler;
  int kv_blocks = 0;      // blocks of 64 positions in the pool
  int max_positions = 0;  // longest sequence
  int valid_ids = 0;      // ids of the tokenizer
  int logit_rows = 64;    // rows of logits held at a time
  Precision precision;
  bool graphs = true;  // on devices, steps of decoding are recorded (model/StepGraphs.hpp)
};

// How an engine runs in one layout. What it refers to must outlive its use.
struct EngineSetup {
  const ModelView* view = nullptr;
  const ModelParallel* parallel = nullptr;
  EngineOptions options;
};

// The memory of an engine, for the largest of the layouts that it will run in. Its buffers stay
// where they are.
struct EngineMemory {
  int layers = 0, step_rows = 0;
  DeviceBatch::Shape batch;
  std::int64_t kv_layer = 0, activations = 0, head = 0;  // floats

  static EngineMemory of(const ParamTable& table, const ModelParallel& parallel,
                         const EngineOptions& options);
  // Makes room for `other` too.
  void cover(const EngineMemory& other);
  void add_memory(MemoryPlan& plan, MemoryPhase phase) const;
};

// The next tokens of a sequence in a forward pass.
struct Chunk {
  const std::int32_t* blocks = nullptr;  // pages of all positions up to the last one's
  int computed = 0;                      // positions before the first one
  std::span<const std::int32_t> tokens;
};

// A row of the hidden states of a pass that tokens are drawn from: those of `samples` samples, from
// `id` on, that have the same tokens up to there.
struct DrawRow {
  int row = 0;
  ResponseId id;
  int samples = 1;
  std::span<const std::int32_t> tokens;
};

// Runs a model in one layout at a time: forward passes over its KV cache, and draws from their
// results.
class ModelRunner {
 public:
  // `memory` covers all layouts that rebind() will be given.
  ModelRunner(const Exec& exec, const EngineSetup& setup, const EngineMemory& memory, Arena& arena,
              MemoryPhase phase, ConstFloatMatrix rope_table);

  // Goes on in another layout. No device memory is allocated, and no page copied.
  void rebind(const EngineSetup& setup);

  const Exec& exec() const { return exec_; }
  // The same for products between passes, with the memory that these have for rounded operands.
  Exec with_rounding() const { return pass_.with_rounding(exec_); }
  const EngineOptions& options() const { return options_; }
  const ModelParallel& parallel() const { return *parallel_; }
  const ParamTable& table() const { return view_->table(); }
  const StepGraphs& graphs() const { return graphs_; }
  // The KV cache, as it is and as another layout would see the same memory.
  const BlockPool& pool() const { return pool_; }
  BlockPool pool_for(const EngineSetup& setup) const;

  // Hidden states of all tokens, one chunk's after the other's, valid until the next call. The
  // chunks' keys and values are in the cache from then on. Does not wait: ids and positions of a
  // pass are read until something waits for its results. Collective over the group of the layout.
  FloatMatrix forward(std::span<const Chunk> chunks);
  // A part of such a pass, its first layers or later ones: the streams behind them, (tokens, h),
  // valid until the next call. If layers.begin is above 0, the streams before them are rows `rows`
  // of `streams` (any rows, h), one for each token. Keys and values of these layers are in the
  // cache. Collective over the group of the layout.
  FloatMatrix forward(std::span<const Chunk> chunks, Range layers, ConstFloatMatrix streams,
                      std::span<const std::int32_t> rows);
  // An approximation by windows of layers (model/LayerWindows.hpp), which works in `memory` as
  // well. Keys and values of these tokens do not count as being in the cache. Collective over the
  // group of the windows.
  FloatMatrix forward(std::span<const Chunk> chunks, const LayerWindows& windows, float* memory);
  // Tokens after the rows, those of all samples of a row side by side, in chunks of as many rows as
  // there is memory for logits. Collective over the group, which is that of the exchange.
  std::vector<DrawnToken> draw(std::span<const DrawRow> rows, FloatMatrix hidden,
                               const SamplingOptions& sampling, StepExchange& exchange);

 private:
  int recorded_rows(std::span<const Chunk> chunks) const;
  TokenBatch assemble(std::span<const Chunk> chunks, int rows);
  void draw_chunk(std::span<const DrawRow> rows, FloatMatrix hidden,
                  const SamplingOptions& sampling, StepExchange& exchange,
                  std::vector<DrawnToken>& tokens);

  const Exec& exec_;
  const ModelView* view_;
  const ModelParallel* parallel_;
  EngineOptions options_;
  ConstFloatMatrix rope_table_;
  KvMemory kv_memory_;
  float *pass_memory_, *head_memory_;
  DeviceBatch batch_;
  BlockPool pool_;
  InferencePass pass_;
  TokenHead head_;
  StepGraphs graphs_;
  RepetitionPenalty penalty_;
  // The packed batch of the current pass, with room for the largest: recorded steps read it where
  // it is.
  Staged<std::int32_t> ids_, positions_;
  Staged<AttentionSegment> segments_;
  Staged<std::int32_t> stream_rows_;
};

}  // namespace taper
