// SPDX-License-Identifier: Apache-2.0
#include "model/Transformer.hpp"

#include <vector>

#include "base/Error.hpp"
#include "kernels/Staging.hpp"
#include "kernels/copy.hpp"
#include "kernels/embedding.hpp"
#include "model/DeviceCollectives.hpp"

namespace taper {

void embed_tokens(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                  const TokenBatch& batch, FloatMatrix x, float* workspace) {
  const std::int32_t begin = parallel.shard().first_id();
  embed(exec, x, batch.ids, view.embedding(), begin);
  if (parallel.group().is_null()) return;
  // Every rank knows all ids, hence who owns which row: owned rows travel once, owner by owner.
  const int size = parallel.group().size();
  const std::size_t h = x.extent(1), rows = x.extent(0);
  std::vector<Staged<std::int32_t>> rows_of(size);  // by owner, ascending
  for (std::size_t r = 0; r < rows; ++r)
    rows_of[shard_of_id(view.table(), size, batch.host_ids(r))].push_back(
        static_cast<std::int32_t>(r));
  std::vector<std::int64_t> counts;
  Staged<std::int32_t> order;
  for (const auto& owned : rows_of) {
    counts.push_back(static_cast<std::int64_t>(owned.size() * h));
    order.insert(order.end(), owned.begin(), owned.end());
  }
  const Staged<std::int32_t>& owned = rows_of[parallel.group().rank()];
  const FloatMatrix all(workspace, rows, h), mine(workspace + rows * h, owned.size(), h);
  gather_rows(exec, mine, ConstFloatMatrix(x), staging_view(owned));
  all_gather_v(exec, parallel.group(), flat(all), flat(ConstFloatMatrix(mine)), counts);
  scatter_rows(exec, x, ConstFloatMatrix(all), staging_view(order));
}

std::int64_t InferencePass::floats(const ParamTable& table, const ModelParallel& parallel, int rows,
                                   Arithmetic arithmetic) {
  const ActivationShape shape(table, parallel.shard());
  return static_cast<std::int64_t>(rows) * table.config().hidden +
         LayerActivations::floats(shape, rows) +
         layer_scratch_floats(parallel, table.config().hidden, rows) +
         rounded_input_floats(shape, rows, arithmetic) + 64;
}

InferencePass::InferencePass(const ParamTable& table, const ModelParallel& parallel, int rows,
                             Arithmetic arithmetic, float* memory, ConstFloatMatrix rope_table)
    : table_(&table), rows_(rows), rope_table_(rope_table) {
  const ActivationShape shape(table, parallel.shard());
  rounded_floats_ = rounded_input_floats(shape, rows, arithmetic);
  hidden_ = memory;
  activations_ = hidden_ + aligned_floats(static_cast<std::int64_t>(rows) * table.config().hidden);
  partials_ = activations_ + LayerActivations::floats(shape, rows);
  rounded_ =
      partials_ + aligned_floats(layer_scratch_floats(parallel, table.config().hidden, rows));
}

FloatMatrix InferencePass::stream(int rows) const {
  TAPER_EXPECT(rows <= rows_);
  return make_matrix(hidden_, rows, table_->config().hidden);
}

FloatMatrix InferencePass::embed(const Exec& exec, const ModelView& view,
                                 const ModelParallel& parallel, const TokenBatch& batch) const {
  const FloatMatrix x = stream(batch.rows());
  embed_tokens(exec, view, parallel, batch, x, partials_);
  return x;
}

LayerContext InferencePass::context(const Exec& exec, const ModelParallel& parallel,
                                    const TokenBatch& batch, const ActivationShape& shape) const {
  return {exec, parallel, table_->config(), shape, batch, rope_table_, partials_};
}

void InferencePass::apply_layers(const Exec& exec, const ModelView& view,
                                 const ModelParallel& parallel, const TokenBatch& batch,
                                 const PagedLayers& pages, Range layers) const {
  const FloatMatrix x = stream(batch.rows());
  const ActivationShape shape(*table_, parallel.shard());
  const LayerActivations activations(shape, rows_, activations_);
  const Exec with_memory = with_rounding(exec);
  const LayerContext context = this->context(with_memory, parallel, batch, shape);
  for (int l = layers.begin; l < layers.end; ++l)
    forward_layer(context, view.layer(l), pages.layer(l), activations, x, x);
}

FloatMatrix InferencePass::forward(const Exec& exec, const ModelView& view,
                                   const ModelParallel& parallel, const TokenBatch& batch,
                                   const PagedLayers& pages) {
  const FloatMatrix x = embed(exec, view, parallel, batch);
  apply_layers(exec, view, parallel, batch, pages, all_layers());
  return x;
}

FloatMatrix InferencePass::forward(const Exec& exec, const ModelView& view,
                                   const ModelParallel& parallel, const TokenBatch& batch,
                                   const PagedLayers& pages, StepGraphs& graphs) {
  // Which ranks have which rows of the table differs from step to step.
  const FloatMatrix x = embed(exec, view, parallel, batch);
  graphs.run(exec,
             {&view, &parallel, pages.first.kv, batch.segments.data(), batch.positions.data(),
              batch.rows()},
             [&] { apply_layers(exec, view, parallel, batch, pages, all_layers()); });
  return x;
}

FloatMatrix InferencePass::forward(const Exec& exec, const ModelView& view,
                                   const ModelParallel& parallel, const TokenBatch& batch,
                                   const PagedLayers& pages, const LayerWindows& windows,
                                   float* window_memory) {
  const FloatMatrix x = embed(exec, view, parallel, batch);
  const ActivationShape shape(*table_, parallel.shard());
  windows.forward(context(exec, parallel, batch, shape), view, pages,
                  LayerActivations(shape, rows_, activations_), x, window_memory);
  return x;
}

}  // namespace taper
