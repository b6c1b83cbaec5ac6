// SPDX-License-Identifier: Apache-2.0
#include "instance/InferenceModel.hpp"

#include <span>

#include "comm/Collectives.hpp"
#include "kernels/Staging.hpp"
#include "session/RankBlocks.hpp"

namespace taper {

InferenceModel::InferenceModel(const std::string& name, const ModelFiles& files, const Ranks& ranks,
                               int tp)
    : name_(name),
      files_(&files),
      ranks_(&ranks),
      parallel_(files.table, ranks.groups.tp_group(tp)),
      local_(files.table, parallel_.shard()),
      share_(ranks, files.table, {place_on_all(ranks, tp).layout}) {}

void InferenceModel::add_memory(MemoryPlan& plan, WeightType type) const {
  PackedModel::add_memory(plan, name_, local_, type, WithBackward::kNo, share_.memory());
}

void InferenceModel::create(WeightType type, Arena& arena) {
  packed_ = std::make_unique<PackedModel>(name_, local_, parallel_.shard(), type, WithBackward::kNo,
                                          arena);
  view_ = std::make_unique<ModelView>(*packed_, parallel_.shard());
}

void InferenceModel::load(WeightType type, Arena& arena) {
  const HuggingFaceReader reader = files_->open_weights();
  fill(type, arena, [&](int piece, std::span<float> values) { reader.read_piece(piece, values); });
}

// Tensor by tensor.
void InferenceModel::fill(WeightType type, Arena& arena, const PieceSource& source) {
  create(type, arena);
  Staged<float> values;
  for (int t = 0; t < static_cast<int>(files_->table.tensors().size()); ++t) {
    if (!share_.packs(t)) continue;
    const std::int64_t begin = local_.offset(t);
    values.resize(static_cast<std::size_t>(local_.offset(t + 1) - begin));
    for (const auto& p : local_.pieces_of(t))
      source(p.id, std::span(values.data() + (p.offset - begin), static_cast<std::size_t>(p.size)));
    packed_->pack(ranks_->exec, t, values.data());
    ranks_->exec.fence();  // values are read again
  }
  if (share_.is_shared()) barrier(ranks_->world());  // others pack for this rank
}

}  // namespace taper
