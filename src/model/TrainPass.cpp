// SPDX-License-Identifier: Apache-2.0
#include "model/TrainPass.hpp"

#include <algorithm>

#include "base/Error.hpp"
#include "kernels/copy.hpp"

namespace taper {
namespace {

constexpr const char* kStreamItem = "activations (layer inputs)";
constexpr const char* kActivationItem = "activations (layers)";
constexpr const char* kScratchItem = "activations (scratch)";
constexpr const char* kPageItem = "keys and values (training)";
constexpr const char* kHeadItem = "logits (training)";
constexpr const char* kScalarItem = "scalar head (training)";

const char* head_item(const ParamTable& table) {
  return table.config().has_scalar_head() ? kScalarItem : kHeadItem;
}

int head_rows(const TrainPassOptions& o) {
  if (kOnHost || o.precision.kv_type != KvType::kBf16) return o.logit_rows;
  return std::max(o.logit_rows, std::min(o.max_rows, 4 * o.logit_rows));
}

// Memory for the operands of a gradient of weights (Rounding): those of the largest of a layer and
// of the head.
std::int64_t rounded_floats(const ActivationShape& shape, const ParamTable& table,
                            const ModelShard& shard, const TrainPassOptions& o) {
  if (!rounds_operands(o.precision.arithmetic)) return 0;
  const std::int64_t outputs = std::max({2 * shape.mlp, shape.query, shape.key_value});
  std::int64_t floats = rounded_outer_floats(o.max_rows, outputs, shape.hidden);
  if (!table.config().has_scalar_head())
    floats = std::max(floats, rounded_outer_floats(head_rows(o), shard.vocab().size() * kVocabBlock,
                                                   shape.hidden));
  return floats;
}

}  // namespace

// Floats of each item of the memory plan.
struct TrainPass::Sizes {
  std::int64_t streams, activations, layer_activations, scratch, gradient_stream, partials, pages,
      batch, rounded, head;

  Sizes(const ParamTable& table, const ModelParallel& parallel, const TrainPassOptions& o) {
    const ActivationShape shape(table, parallel.shard());
    const ModelConfig& c = table.config();
    const std::int64_t rows = o.max_rows;
    streams = (c.layers + 1) * rows * c.hidden;
    layer_activations = LayerActivations::floats(shape, o.max_rows);
    activations = layer_activations * (o.checkpointing == Checkpointing::kYes ? 1 : c.layers);
    scratch = BackwardScratch::floats(shape, o.max_rows, o.shares_prefixes);
    gradient_stream = rows * c.hidden;
    partials = layer_scratch_floats(parallel, c.hidden, o.max_rows);
    pages = PackedBatch::pages(o.max_rows, o.max_sequences) *
            layer_page_floats(shape, c.head_dim, o.precision.kv_type);
    batch = PackedBatch::floats(o.max_rows, o.max_sequences);
    rounded = rounded_floats(shape, table, parallel.shard(), o);
    head = c.has_scalar_head() ? ScalarHead::floats(table, o.logit_rows)
                               : TokenHead::floats(table, parallel, head_rows(o));
  }
};

void TrainPass::add_memory(MemoryPlan& plan, const ParamTable& table, const ModelParallel& parallel,
                           const TrainPassOptions& options) {
  const Sizes s(table, parallel, options);
  const auto add = [&](const char* item, std::int64_t floats) {
    plan.add(options.owner.item(item), options.owner.phase,
             floats * static_cast<std::int64_t>(sizeof(float)));
  };
  add(kStreamItem, s.streams);
  add(kActivationItem, s.activations);
  add(kScratchItem, s.scratch);
  add(kScratchItem, s.gradient_stream);
  add(kScratchItem, s.partials);
  add(kPageItem, s.pages);
  add(kPageItem, s.batch);
  add(kScratchItem, s.rounded);
  add(head_item(table), s.head);
}

TrainPass::TrainPass(const ParamTable& table, const ModelParallel& parallel,
                     const TrainPassOptions& options, Arena& arena, ConstFloatMatrix rope_table)
    : table_(&table), options_(options), shape_(table, parallel.shard()), rope_table_(rope_table) {
  const Sizes s(table, parallel, options);
  const auto take = [&](const char* item, std::int64_t floats) {
    return arena.take<float>(options.owner.item(item), options.owner.phase, floats);
  };
  streams_ = take(kStreamItem, s.streams);
  activations_ = take(kActivationItem, s.activations);
  scratch_ = take(kScratchItem, s.scratch);
  gradient_stream_ = take(kScratchItem, s.gradient_stream);
  partials_ = take(kScratchItem, s.partials);
  activation_floats_ = s.layer_activations;
  // The pages of one layer serve all layers: backward_layer() writes keys and values again.
  pages_ = make_layer_pages(shape_, table.config().head_dim, options.precision.kv_type,
                            take(kPageItem, s.pages));
  batch_ = std::make_unique<PackedBatch>(take(kPageItem, s.batch), options.max_rows,
                                         options.max_sequences);
  rounded_ = take(kScratchItem, s.rounded);
  rounded_floats_ = s.rounded;
  float* head = take(head_item(table), s.head);
  if (table.config().has_scalar_head())
    scalar_.emplace(table, options.logit_rows, head);
  else
    head_.emplace(table, parallel, head_rows(options), head);
}

FloatMatrix TrainPass::stream(int layer) const {
  const int h = table_->config().hidden;
  return make_matrix(streams_ + static_cast<std::int64_t>(layer) * options_.max_rows * h,
                     batch_->batch().rows(), h);
}

void TrainPass::copy_stream(const Exec& exec, int layer, std::span<const std::int32_t> rows,
                            FloatMatrix out) const {
  const StagedInput<std::int32_t> on_device(rows);
  gather_rows(exec, out, ConstFloatMatrix(stream(layer)), on_device.view());
  exec.fence();
}

LayerActivations TrainPass::activations(int layer) const {
  const int slot = options_.checkpointing == Checkpointing::kYes ? 0 : layer;
  return {shape_, options_.max_rows, activations_ + slot * activation_floats_};
}

Exec TrainPass::with_rounding(const Exec& exec) const {
  return taper::with_rounding(exec, rounded_, rounded_floats_);
}

LayerContext TrainPass::context(const Exec& exec, const ModelParallel& parallel) const {
  return {exec, parallel, table_->config(), shape_, batch_->batch(), rope_table_, partials_};
}

void TrainPass::set_batch(const Exec& exec, const PackedSequences& sequences) {
  TAPER_EXPECT(options_.shares_prefixes || sequences.positions() == sequences.rows());
  TAPER_EXPECT(sequences.positions() <= options_.max_rows &&
               static_cast<int>(sequences.lengths.size()) <= options_.max_sequences);
  batch_->set(exec, sequences);
}

void TrainPass::forward(const Exec& given, const ModelView& view, const ModelParallel& parallel,
                        const PackedSequences& sequences) {
  const Exec exec = with_rounding(given);
  set_batch(exec, sequences);
  embed_tokens(exec, view, parallel, batch_->batch(), stream(0), partials_);
  for (int l = 0; l < table_->config().layers; ++l)
    forward_layer(context(exec, parallel), view.layer(l), pages_, activations(l), stream(l + 1),
                  stream(l));
}

void TrainPass::log_probs(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                          std::span<const int> rows, std::span<const std::int32_t> targets,
                          const HeadOptions& head, std::span<float> log_prob,
                          std::span<float> entropy) {
  TAPER_EXPECT(head_);
  head_->log_probs(with_rounding(exec), view, parallel, stream(table_->config().layers), rows,
                   targets, head, log_prob, entropy);
}

void TrainPass::backward(const Exec& given, const ModelView& view, const ModelParallel& parallel,
                         std::span<const int> rows, std::span<const std::int32_t> targets,
                         const HeadOptions& head, const TokenLoss& loss,
                         const Gradients& gradients) {
  TAPER_EXPECT(head_);
  const Exec exec = with_rounding(given);
  const ModelConfig& c = table_->config();
  const FloatMatrix dx = clear_gradient_stream(exec);
  const ParamRole head_role = c.tied ? ParamRole::kEmbedding : ParamRole::kHead;
  head_->backward(exec, view, parallel, stream(c.layers), rows, targets, head, loss, dx,
                  gradients.matrix(head_role), gradients.vector(ParamRole::kFinalNorm));
  backward_layers(exec, view, parallel, dx, gradients);
}

void TrainPass::values(const Exec& exec, const ModelView& view, std::span<const int> rows,
                       std::span<float> value) const {
  TAPER_EXPECT(scalar_);
  scalar_->values(exec, view, stream(table_->config().layers), rows, value);
}

void TrainPass::backward_values(const Exec& given, const ModelView& view,
                                const ModelParallel& parallel, std::span<const int> rows,
                                std::span<const float> slopes, const Gradients& gradients) {
  TAPER_EXPECT(scalar_);
  const Exec exec = with_rounding(given);
  const FloatMatrix dx = clear_gradient_stream(exec);
  scalar_->backward(exec, view, stream(table_->config().layers), rows, slopes, dx,
                    gradients.vector(ParamRole::kScore), gradients.vector(ParamRole::kFinalNorm));
  backward_layers(exec, view, parallel, dx, gradients);
}

FloatMatrix TrainPass::clear_gradient_stream(const Exec& exec) const {
  const FloatMatrix dx =
      make_matrix(gradient_stream_, batch_->batch().rows(), table_->config().hidden);
  fill(exec, flat(dx), 0.0f);
  return dx;
}

void TrainPass::backward_layers(const Exec& exec, const ModelView& view,
                                const ModelParallel& parallel, FloatMatrix dx,
                                const Gradients& gradients) {
  const ModelConfig& c = table_->config();
  const BackwardScratch scratch(shape_, options_.max_rows, options_.shares_prefixes, scratch_);
  for (int l = c.layers - 1; l >= 0; --l) {
    if (options_.checkpointing == Checkpointing::kYes)
      forward_layer(context(exec, parallel), view.layer(l), pages_, activations(l), stream(l + 1),
                    stream(l));
    backward_layer(context(exec, parallel), view.layer(l), pages_, activations(l),
                   gradients.layer(l), scratch, dx, stream(l));
  }
  add_rows(exec, gradients.matrix(ParamRole::kEmbedding), dx, batch_->batch().ids,
           parallel.shard().first_id());
}

}  // namespace taper
