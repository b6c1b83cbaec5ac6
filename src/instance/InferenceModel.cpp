// SPDX-License-Identifier: Apache-2.0
#include "instance/InferenceModel.hpp"

#include <span>

#include "comm/Collectives.hpp"
#include "kernels/Staging.hpp"
#include "session/RankBlocks.hpp"

namespace taper {

InferenceModel::InferenceModel(const std::string& name, const ModelFiles& files, const Ranks& ranks,
                               int tp, std::optional<MemoryPhase> phase)
    : name_(name),
      files_(&files),
      ranks_(&ranks),
      phase_(phase),
      parallel_(files.table, ranks.groups.tp_group(tp), ranks.exec.arithmetic),
      local_(files.table, parallel_.shard()),
      share_(ranks, files.table, {place_on_all(ranks, tp).layout}) {}

void InferenceModel::add_memory(MemoryPlan& plan, WeightType type) const {
  PackedMemory memory{.share = share_.memory()};
  if (phase_) {
    PackedModel::add_memory(plan, name_, local_, type, WithBackward::kNo, {.phase = *phase_});
    memory.kind = MemoryKind::kStaging;
  }
  PackedModel::add_memory(plan, name_, local_, type, WithBackward::kNo, memory);
}

void InferenceModel::create(WeightType type, Arena& arena) {
  const auto take = [&](MemoryPhase phase) {
    return std::make_unique<PackedModel>(name_, local_, parallel_.shard(), type, WithBackward::kNo,
                                         arena, phase);
  };
  if (phase_) staged_ = take(MemoryPhase::kAlways);
  packed_ = take(phase_.value_or(MemoryPhase::kAlways));
  view_ = std::make_unique<ModelView>(*packed_, parallel_.shard());
}

void InferenceModel::load(WeightType type, Arena& arena) {
  const HuggingFaceReader reader = files_->open_weights();
  fill(type, arena, [&](int piece, std::span<float> values) { reader.read_piece(piece, values); });
}

void InferenceModel::bring() {
  if (staged_) packed_->bring(ranks_->exec, *staged_);
}

// Tensor by tensor.
void InferenceModel::fill(WeightType type, Arena& arena, const PieceSource& source) {
  create(type, arena);
  PackedModel& filled = staged_ ? *staged_ : *packed_;
  Staged<float> values;
  for (int t = 0; t < static_cast<int>(files_->table.tensors().size()); ++t) {
    if (!share_.packs(t)) continue;
    const std::int64_t begin = local_.offset(t);
    values.resize(static_cast<std::size_t>(local_.offset(t + 1) - begin));
    for (const auto& p : local_.pieces_of(t))
      source(p.id, std::span(values.data() + (p.offset - begin), static_cast<std::size_t>(p.size)));
    filled.pack(ranks_->exec, t, values.data());
    ranks_->exec.fence();  // values are read again
  }
  if (share_.is_shared()) barrier(ranks_->world());  // others pack for this rank
}

}  // namespace taper
