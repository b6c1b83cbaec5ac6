// SPDX-License-Identifier: Apache-2.0
#include "model/Transformer.hpp"

#include <vector>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "kernels/Staging.hpp"
#include "kernels/copy.hpp"
#include "kernels/embedding.hpp"

namespace taper {

void embed_tokens(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                  VectorView<const std::int32_t, Exec> ids, FloatMatrix x) {
  const std::int32_t begin = parallel.shard().vocab().begin * kVocabBlock;
  embed(exec, x, ids, view.embedding(), begin);
  if (parallel.group().is_null()) return;
  // Every rank knows all ids, hence who owns which row: owned rows travel once, owner by owner.
  const int size = parallel.group().size(), blocks = view.table().vocab_blocks();
  const std::size_t h = x.extent(1), rows = x.extent(0);
  std::vector<Staged<std::int32_t>> rows_of(size);  // by owner, ascending
  for (std::size_t r = 0; r < rows; ++r)
    rows_of[shard_of_unit(blocks, size, ids(r) / kVocabBlock)].push_back(
        static_cast<std::int32_t>(r));
  std::vector<std::int64_t> counts;
  Staged<std::int32_t> order;
  for (const auto& owned : rows_of) {
    counts.push_back(static_cast<std::int64_t>(owned.size() * h));
    order.insert(order.end(), owned.begin(), owned.end());
  }
  const Staged<std::int32_t>& owned = rows_of[parallel.group().rank()];
  Staged<float> mine(owned.size() * h), all(rows * h);
  gather_rows(exec, FloatMatrix(mine.data(), owned.size(), h), x, staging_view(owned));
  exec.fence();
  all_gather_v(parallel.group(), all, mine, counts);
  scatter_rows(exec, x, ConstFloatMatrix(all.data(), rows, h), staging_view(order));
  exec.fence();
}

std::int64_t InferencePass::floats(const ParamTable& table, const ModelParallel& parallel,
                                   int rows) {
  const ActivationShape shape(table, parallel.shard());
  return static_cast<std::int64_t>(rows) * table.config().hidden +
         LayerActivations::floats(shape, rows) +
         layer_scratch_floats(parallel, table.config().hidden, rows) + 64;
}

InferencePass::InferencePass(const ParamTable& table, const ModelParallel& parallel, int rows,
                             float* memory, ConstFloatMatrix rope_table)
    : table_(&table), rows_(rows), rope_table_(rope_table) {
  const ActivationShape shape(table, parallel.shard());
  hidden_ = memory;
  activations_ = hidden_ + aligned_floats(static_cast<std::int64_t>(rows) * table.config().hidden);
  partials_ = activations_ + LayerActivations::floats(shape, rows);
}

FloatMatrix InferencePass::forward(const Exec& exec, const ModelView& view,
                                   const ModelParallel& parallel, const TokenBatch& batch,
                                   const PagedLayers& pages) {
  TAPER_EXPECT(batch.rows() <= rows_);
  const ActivationShape shape(*table_, parallel.shard());
  const LayerActivations activations(shape, rows_, activations_);
  const LayerContext context{exec,  parallel,    table_->config(), shape,
                             batch, rope_table_, partials_};
  const FloatMatrix x = make_matrix(hidden_, batch.rows(), table_->config().hidden);
  embed_tokens(exec, view, parallel, batch.ids, x);
  for (int l = 0; l < table_->config().layers; ++l)
    forward_layer(context, view.layer(l), pages.layer(l), activations, x, x);
  return x;
}

}  // namespace taper
