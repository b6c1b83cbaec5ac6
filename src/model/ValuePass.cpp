// SPDX-License-Identifier: Apache-2.0
#include "model/ValuePass.hpp"

#include <algorithm>

#include "base/Error.hpp"

namespace taper {
namespace {

std::string item(const std::string& name) {
  return name + " activations";
}

int head_rows(const ValuePassOptions& o) {
  return std::min(o.max_sequences, 512);
}

std::int64_t pages_floats(const ParamTable& table, const ModelParallel& parallel,
                          const ValuePassOptions& o) {
  return PackedBatch::pages(o.max_rows, o.max_sequences) *
         layer_page_floats(ActivationShape(table, parallel.shard()), table.config().head_dim,
                           o.precision.kv_type);
}

float* take(Arena& arena, const std::string& name, MemoryPhase phase, std::int64_t floats) {
  return arena.take<float>(item(name), phase, floats);
}

}  // namespace

void ValuePass::add_memory(MemoryPlan& plan, const std::string& name, const ParamTable& table,
                           const ModelParallel& parallel, const ValuePassOptions& o) {
  for (const std::int64_t floats :
       {InferencePass::floats(table, parallel, o.max_rows, o.precision.arithmetic),
        pages_floats(table, parallel, o), ScalarHead::floats(table, head_rows(o)),
        PackedBatch::floats(o.max_rows, o.max_sequences)})
    plan.add(item(name), o.phase, floats * std::int64_t{sizeof(float)});
}

ValuePass::ValuePass(const std::string& name, const ParamTable& table,
                     const ModelParallel& parallel, const ValuePassOptions& o, Arena& arena,
                     ConstFloatMatrix rope_table)
    : options_(o),
      pass_(table, parallel, o.max_rows, o.precision.arithmetic,
            take(arena, name, o.phase,
                 InferencePass::floats(table, parallel, o.max_rows, o.precision.arithmetic)),
            rope_table),
      pages_(make_layer_pages(ActivationShape(table, parallel.shard()), table.config().head_dim,
                              o.precision.kv_type,
                              take(arena, name, o.phase, pages_floats(table, parallel, o)))),
      head_(table, head_rows(o),
            take(arena, name, o.phase, ScalarHead::floats(table, head_rows(o)))),
      batch_(take(arena, name, o.phase, PackedBatch::floats(o.max_rows, o.max_sequences)),
             o.max_rows, o.max_sequences) {}

void ValuePass::values(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                       const PackedSequences& sequences, std::span<const int> rows,
                       std::span<float> value) {
  TAPER_EXPECT(sequences.rows() <= options_.max_rows &&
               static_cast<int>(sequences.lengths.size()) <= options_.max_sequences);
  batch_.set(exec, sequences);
  // No key or value is read again once its layer is through: all layers share their pages.
  const FloatMatrix hidden = pass_.forward(exec, view, parallel, batch_.batch(), {pages_, 0});
  head_.values(exec, view, hidden, rows, value);
}

}  // namespace taper
