// SPDX-License-Identifier: Apache-2.0
#include "engine/ModelRunner.hpp"

#include <algorithm>
#include <functional>

#include "kernels/copy.hpp"

namespace taper {
namespace {

constexpr const char* kPassItem = "activations (inference)";
constexpr const char* kHeadItem = "logits (generation)";

BlockShape block_shape(const ParamTable& table, const ModelShard& shard,
                       const EngineOptions& options) {
  return {table.config().layers, shard.kv_heads().size(), table.config().head_dim,
          options.precision.kv_type};
}

}  // namespace

EngineMemory EngineMemory::of(const ParamTable& table, const ModelParallel& parallel,
                              const EngineOptions& options) {
  EngineMemory memory;
  memory.layers = table.config().layers;
  memory.step_rows = options.scheduler.max_step_rows;
  memory.batch = {options.scheduler.max_step_rows, options.scheduler.max_step_rows,
                  (options.max_positions + kPage - 1) / kPage};
  if (kOnHost || options.precision.kv_type == KvType::kBf16) {
    memory.batch.group = table.config().heads / table.config().kv_heads;
    memory.batch.head_dim = table.config().head_dim;
  }
  memory.kv_layer =
      options.kv_blocks * block_shape(table, parallel.shard(), options).layer_floats();
  memory.activations = InferencePass::floats(table, parallel, options.scheduler.max_step_rows,
                                             options.precision.arithmetic);
  memory.head = TokenHead::floats(table, parallel, options.logit_rows);
  return memory;
}

void EngineMemory::cover(const EngineMemory& other) {
  layers = std::max(layers, other.layers);
  step_rows = std::max(step_rows, other.step_rows);
  batch.rows = std::max(batch.rows, other.batch.rows);
  batch.segments = std::max(batch.segments, other.batch.segments);
  batch.pages = std::max(batch.pages, other.batch.pages);
  batch.group = std::max(batch.group, other.batch.group);
  batch.head_dim = std::max(batch.head_dim, other.batch.head_dim);
  kv_layer = std::max(kv_layer, other.kv_layer);
  activations = std::max(activations, other.activations);
  head = std::max(head, other.head);
}

void EngineMemory::add_memory(MemoryPlan& plan, MemoryPhase phase) const {
  constexpr std::int64_t kBytes = sizeof(float);
  BlockPool::add_memory(plan, phase, layers, kv_layer);
  plan.add(kPassItem, phase, activations * kBytes);
  plan.add(kPassItem, phase, DeviceBatch::floats(batch) * kBytes);
  plan.add(kHeadItem, phase, head * kBytes);
}

ModelRunner::ModelRunner(const Exec& exec, const EngineSetup& setup, const EngineMemory& memory,
                         Arena& arena, MemoryPhase phase, ConstFloatMatrix rope_table)
    : exec_(exec),
      view_(setup.view),
      parallel_(setup.parallel),
      options_(setup.options),
      rope_table_(rope_table),
      kv_memory_(BlockPool::take(arena, phase, memory.layers, memory.kv_layer)),
      pass_memory_(arena.take<float>(kPassItem, phase, memory.activations)),
      head_memory_(arena.take<float>(kHeadItem, phase, memory.head)),
      batch_(arena.take<float>(kPassItem, phase, DeviceBatch::floats(memory.batch)), memory.batch),
      pool_(pool_for(setup)),
      pass_(view_->table(), *parallel_, options_.scheduler.max_step_rows,
            options_.precision.arithmetic, pass_memory_, rope_table),
      head_(view_->table(), *parallel_, options_.logit_rows, head_memory_) {
  const auto rows = static_cast<std::size_t>(memory.step_rows);
  ids_.reserve(rows);
  positions_.reserve(rows);
  segments_.reserve(rows);
}

BlockPool ModelRunner::pool_for(const EngineSetup& setup) const {
  return {block_shape(setup.view->table(), setup.parallel->shard(), setup.options),
          setup.options.kv_blocks, kv_memory_};
}

void ModelRunner::rebind(const EngineSetup& setup) {
  view_ = setup.view;
  parallel_ = setup.parallel;
  options_ = setup.options;
  pool_ = pool_for(setup);
  pass_ = InferencePass(view_->table(), *parallel_, options_.scheduler.max_step_rows,
                        options_.precision.arithmetic, pass_memory_, rope_table_);
  head_ = TokenHead(view_->table(), *parallel_, options_.logit_rows, head_memory_);
}

// How many rows a pass gets whose launches are recorded; 0 if they are not.
int ModelRunner::recorded_rows(std::span<const Chunk> chunks) const {
  const int rows =
      StepGraphs::padded_rows(static_cast<int>(chunks.size()), options_.scheduler.max_step_rows);
  const Group& group = parallel_->group();
  if (rows == 0 || !options_.graphs || !(group.is_null() || group.connects_devices())) return 0;
  const bool decodes = std::all_of(chunks.begin(), chunks.end(),
                                   [](const Chunk& c) { return c.tokens.size() == 1; });
  return decodes ? rows : 0;
}

// At least `rows` rows, the last ones without a sequence.
TokenBatch ModelRunner::assemble(std::span<const Chunk> chunks, int rows) {
  ids_.clear();
  positions_.clear();
  segments_.clear();
  for (const Chunk& c : chunks) {
    segments_.push_back(
        {c.blocks, c.computed, static_cast<int>(c.tokens.size()), static_cast<int>(ids_.size())});
    ids_.insert(ids_.end(), c.tokens.begin(), c.tokens.end());
    for (int i = 0; i < static_cast<int>(c.tokens.size()); ++i)
      positions_.push_back(c.computed + i);
  }
  for (int row = static_cast<int>(ids_.size()); row < rows; ++row) {
    segments_.push_back({nullptr, 0, 0, row});
    ids_.push_back(0);
    positions_.push_back(0);
  }
  return batch_.bring(exec_,
                      {staging_view(ids_), staging_view(positions_), staging_view(segments_)});
}

FloatMatrix ModelRunner::forward(std::span<const Chunk> chunks) {
  const int recorded = recorded_rows(chunks);
  const TokenBatch batch = assemble(chunks, recorded);
  return recorded > 0 ? pass_.forward(exec_, *view_, *parallel_, batch, pool_.pages(), graphs_)
                      : pass_.forward(exec_, *view_, *parallel_, batch, pool_.pages());
}

FloatMatrix ModelRunner::forward(std::span<const Chunk> chunks, Range layers,
                                 ConstFloatMatrix streams, std::span<const std::int32_t> rows) {
  const TokenBatch batch = assemble(chunks, 0);
  const FloatMatrix x = pass_.stream(batch.rows());
  if (layers.begin == 0) {
    pass_.embed(exec_, *view_, *parallel_, batch);
  } else {
    stream_rows_.assign(rows.begin(), rows.end());
    gather_rows(exec_, x, streams, staging_view(stream_rows_));
  }
  pass_.apply_layers(exec_, *view_, *parallel_, batch, pool_.pages(), layers);
  return x;
}

FloatMatrix ModelRunner::forward(std::span<const Chunk> chunks, const LayerWindows& windows,
                                 float* memory) {
  return pass_.forward(exec_, *view_, *parallel_, assemble(chunks, 0), pool_.pages(), windows,
                       memory);
}

std::vector<DrawnToken> ModelRunner::draw(std::span<const DrawRow> rows, FloatMatrix hidden,
                                          const SamplingOptions& sampling, StepExchange& exchange) {
  const std::size_t chunk = static_cast<std::size_t>(options_.logit_rows);
  std::vector<DrawnToken> tokens;
  for (std::size_t done = 0; done < rows.size(); done += chunk)
    draw_chunk(rows.subspan(done, std::min(chunk, rows.size() - done)), hidden, sampling, exchange,
               tokens);
  return tokens;
}

void ModelRunner::draw_chunk(std::span<const DrawRow> draw_rows, FloatMatrix hidden,
                             const SamplingOptions& sampling, StepExchange& exchange,
                             std::vector<DrawnToken>& tokens) {
  std::vector<int> rows;
  std::vector<Draw> draws;
  std::vector<std::span<const std::int32_t>> tokens_of_rows;
  for (const DrawRow& r : draw_rows) {
    for (int k = 0; k < r.samples; ++k)
      draws.push_back({static_cast<int>(rows.size()),
                       {r.id.prompt, r.id.sample + k},
                       static_cast<int>(r.tokens.size())});
    rows.push_back(r.row);
    tokens_of_rows.push_back(r.tokens);
  }
  std::function<void(FloatMatrix)> edit;
  if (sampling.repetition_penalty != 1.0f)
    edit = [&](FloatMatrix raw) {
      penalty_.apply(exec_, *parallel_, raw, tokens_of_rows, sampling.repetition_penalty);
    };
  const float temperature = sampling.temperature > 0.0f ? sampling.temperature : 1.0f;
  const RowLogits logits = head_.logits(with_rounding(), *view_, *parallel_, hidden, rows,
                                        {options_.valid_ids, temperature}, edit);
  const std::vector<DrawnToken> drawn =
      draw_tokens(exec_, *parallel_, logits, options_.valid_ids, draws, sampling, exchange);
  tokens.insert(tokens.end(), drawn.begin(), drawn.end());
}

}  // namespace taper
