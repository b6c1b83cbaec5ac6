// SPDX-License-Identifier: Apache-2.0
#include "instance/InferenceModel.hpp"

#include "kernels/Staging.hpp"

namespace taper {
namespace {

// Tensor by tensor.
void pack_pieces(const Exec& exec, const ParamTable& table, PackedModel& packed,
                 const PieceSource& read) {
  const LocalParams& local = packed.local();
  Staged<float> values;
  std::size_t piece = 0;
  for (int t = 0; t < static_cast<int>(table.tensors().size()); ++t) {
    const std::int64_t begin = local.offset(t), size = local.offset(t + 1) - begin;
    values.resize(static_cast<std::size_t>(size));
    for (; piece < local.pieces().size() && local.pieces()[piece].offset < begin + size; ++piece) {
      const auto& p = local.pieces()[piece];
      read(p.id, std::span(values.data() + (p.offset - begin), static_cast<std::size_t>(p.size)));
    }
    packed.pack(exec, t, values.data());
    exec.fence();  // values are read again
  }
}

}  // namespace

void load_packed(const Exec& exec, const ModelFiles& files, PackedModel& packed) {
  const HuggingFaceReader reader = files.open_weights();
  pack_pieces(exec, files.table, packed,
              [&](int piece, std::span<float> values) { reader.read_piece(piece, values); });
}

InferenceModel::InferenceModel(const std::string& name, const ModelFiles& files, const Ranks& ranks,
                               int tp)
    : name_(name),
      files_(&files),
      parallel_(files.table, ranks.groups.tp_group(tp)),
      local_(files.table, parallel_.shard()) {}

void InferenceModel::add_memory(MemoryPlan& plan, WeightType type) const {
  PackedModel::add_memory(plan, name_, local_, type, WithBackward::kNo);
}

void InferenceModel::create(WeightType type, Arena& arena) {
  packed_ = std::make_unique<PackedModel>(name_, local_, parallel_.shard(), type, WithBackward::kNo,
                                          arena);
  view_ = std::make_unique<ModelView>(*packed_, parallel_.shard());
}

void InferenceModel::load(const Exec& exec, WeightType type, Arena& arena) {
  create(type, arena);
  load_packed(exec, *files_, *packed_);
}

void InferenceModel::fill(const Exec& exec, WeightType type, Arena& arena,
                          const PieceSource& source) {
  create(type, arena);
  pack_pieces(exec, files_->table, *packed_, source);
}

}  // namespace taper
