// SPDX-License-Identifier: Apache-2.0
#include "model/PackedModel.hpp"

#include <span>

#include "base/Error.hpp"
#include "kernels/copy.hpp"

namespace taper {
namespace {

std::string packed_item(const std::string& name) {
  return name + " weights (packed)";
}
std::string transposed_item(const std::string& name) {
  return name + " weights (transposed)";
}

bool is_vector(const ParamTensor& tensor) {
  switch (tensor.role) {
    case ParamRole::kInputNorm:
    case ParamRole::kPostNorm:
    case ParamRole::kFinalNorm:
    case ParamRole::kQueryNorm:
    case ParamRole::kKeyNorm:
    case ParamRole::kQueryBias:
    case ParamRole::kKeyValueBias:
    case ParamRole::kScore:
      return true;
    default:
      return false;
  }
}

// How the stored rows enter the forward product; projections that are split by their inputs are
// stored transposed.
PackOrder forward_order(ParamRole role) {
  const bool transposed = role == ParamRole::kOutput || role == ParamRole::kDown;
  return transposed ? PackOrder::kRowsAreInputs : PackOrder::kRowsAreColumns;
}

// The same for the product with the transposed weights, by which gradients go back.
PackOrder backward_order(ParamRole role) {
  return forward_order(role) == PackOrder::kRowsAreInputs ? PackOrder::kRowsAreColumns
                                                          : PackOrder::kRowsAreInputs;
}

// An embedding that is not the output head is only looked up: its gradient needs no transposed
// weights.
bool needs_transposed(const ParamTable& table, const ParamTensor& tensor) {
  return tensor.role != ParamRole::kEmbedding || table.config().has_tied_head();
}

std::int64_t panel_bytes(std::int64_t columns, std::int64_t k, WeightType type) {
  return round_up(static_cast<int>(columns), kPanelColumns) * k * bytes_of(type);
}

PackedMatrix make_packed(void* data, WeightType type, std::int64_t columns, std::int64_t k) {
  return {data, type, static_cast<int>(columns), static_cast<int>(k), k * kPanelColumns};
}

}  // namespace

void PackedModel::add_memory(MemoryPlan& plan, const std::string& name, const LocalParams& local,
                             WeightType type, WithBackward backward, const PackedMemory& memory) {
  const ParamTable& table = local.table();
  const auto add = [&](const std::string& item, std::int64_t bytes) {
    plan.add(item, memory.phase, bytes, memory.kind, memory.share);
  };
  for (std::size_t t = 0; t < table.tensors().size(); ++t) {
    const ParamTensor& tensor = table.tensors()[t];
    const std::int64_t rows = local.rows(static_cast<int>(t)), columns = tensor.columns;
    if (is_vector(tensor)) {
      add(packed_item(name), rows * columns * static_cast<std::int64_t>(sizeof(float)));
      continue;
    }
    const std::int64_t by_rows = panel_bytes(rows, columns, type),
                       by_columns = panel_bytes(columns, rows, type);
    const bool rows_are_inputs = forward_order(tensor.role) == PackOrder::kRowsAreInputs;
    add(packed_item(name), rows_are_inputs ? by_columns : by_rows);
    if (backward == WithBackward::kYes && needs_transposed(table, tensor))
      add(transposed_item(name), rows_are_inputs ? by_rows : by_columns);
  }
}

PackedModel::PackedModel(const std::string& name, const LocalParams& local, const ModelShard& shard,
                         WeightType type, WithBackward backward, Arena& arena, MemoryPhase phase)
    : local_(&local), shard_(shard), type_(type) {
  const ParamTable& table = local.table();
  const auto count = table.tensors().size();
  forward_.resize(count);
  backward_.resize(count);
  vectors_.resize(count);
  for (std::size_t t = 0; t < count; ++t) {
    const ParamTensor& tensor = table.tensors()[t];
    const std::int64_t rows = local.rows(static_cast<int>(t)), columns = tensor.columns;
    if (is_vector(tensor)) {
      vectors_[t] =
          FloatVector(arena.take<float>(packed_item(name), phase, rows * columns), rows * columns);
      continue;
    }
    const auto matrix = [&](const std::string& item, std::int64_t out, std::int64_t in) {
      return make_packed(arena.take(item, phase, panel_bytes(out, in, type)), type, out, in);
    };
    const bool rows_are_inputs = forward_order(tensor.role) == PackOrder::kRowsAreInputs;
    forward_[t] = rows_are_inputs ? matrix(packed_item(name), columns, rows)
                                  : matrix(packed_item(name), rows, columns);
    if (backward == WithBackward::kYes && needs_transposed(table, tensor))
      backward_[t] = rows_are_inputs ? matrix(transposed_item(name), rows, columns)
                                     : matrix(transposed_item(name), columns, rows);
  }
}

void PackedModel::pack(const Exec& exec, int t, const float* values) {
  const ParamTensor& tensor = local_->table().tensors()[t];
  const std::int64_t rows = local_->rows(t);
  if (vectors_[t].data() != nullptr) {
    copy(exec, vectors_[t], ConstFloatVector(values, vectors_[t].size()));
    return;
  }
  const ConstFloatMatrix stored(values, rows, tensor.columns);
  const auto pack_as = [&](const PackedMatrix& matrix, PackOrder order) {
    if (matrix.data != nullptr)
      pack_panels(exec, const_cast<void*>(matrix.data), type_, stored, order);
  };
  pack_as(forward_[t], forward_order(tensor.role));
  pack_as(backward_[t], backward_order(tensor.role));
}

void PackedModel::bring(const Exec& exec, const PackedModel& staged) {
  TAPER_EXPECT(local_ == staged.local_ && type_ == staged.type_);
  const auto bring_part = [&](const void* to, const void* from, std::int64_t bytes) {
    const auto floats = static_cast<std::size_t>(bytes / std::int64_t{sizeof(float)});
    copy_from_host(exec, FloatVector(static_cast<float*>(const_cast<void*>(to)), floats),
                   std::span(static_cast<const float*>(from), floats));
  };
  for (std::size_t t = 0; t < forward_.size(); ++t) {
    const PackedMatrix& matrix = forward_[t];
    if (matrix.data != nullptr)
      bring_part(matrix.data, staged.forward_[t].data,
                 panel_bytes(matrix.columns, matrix.k, type_));
    else
      bring_part(vectors_[t].data(), staged.vectors_[t].data(),
                 std::ssize(vectors_[t]) * std::int64_t{sizeof(float)});
  }
}

ModelView::ModelView(const PackedModel& packed, const ModelShard& shard)
    : packed_(&packed), shard_(shard) {
  const ParamTable& t = table();
  for (const ShardKind kind :
       {ShardKind::kHeads, ShardKind::kKvHeads, ShardKind::kMlpBlocks, ShardKind::kVocab})
    TAPER_INSIST(packed.shard().units(kind).contains(shard.units(kind)),
                 "tensor-parallel shard " << shard.index() << " of " << shard.degree()
                                          << " is not part of the weights held (shard "
                                          << packed.shard().index() << " of "
                                          << packed.shard().degree() << ")");
  for (int l = 0; l < t.config().layers; ++l) layers_.push_back(make_layer(l));
  const int embedding = t.index_of(ParamRole::kEmbedding);
  embedding_ = slice(packed.forward(embedding), embedding, forward_order(ParamRole::kEmbedding));
  if (t.config().has_scalar_head()) {
    score_ = slice_vector(t.index_of(ParamRole::kScore));
  } else {
    const int head = t.config().tied ? embedding : t.index_of(ParamRole::kHead);
    head_ = slice(packed.forward(head), head, forward_order(ParamRole::kHead));
    head_t_ = slice(packed.backward(head), head, backward_order(ParamRole::kHead));
  }
  final_norm_ = packed.vector(t.index_of(ParamRole::kFinalNorm));
}

PackedMatrix ModelView::slice(const PackedMatrix& matrix, int tensor, PackOrder order) const {
  if (matrix.data == nullptr) return matrix;
  const ParamTensor& info = table().tensors()[tensor];
  const Range held = packed_->local().units(tensor), wanted = shard_.units(info.kind);
  const int begin = (wanted.begin - held.begin) * info.unit_rows,
            end = (wanted.end - held.begin) * info.unit_rows;
  return order == PackOrder::kRowsAreColumns ? matrix.column_slice(begin, end)
                                             : matrix.k_slice(begin, end);
}

ConstFloatVector ModelView::slice_vector(int tensor) const {
  if (tensor < 0) return {};
  const ParamTensor& info = table().tensors()[tensor];
  const auto whole = packed_->vector(tensor);
  if (info.kind == ShardKind::kReplicated) return whole;
  const Range held = packed_->local().units(tensor), wanted = shard_.units(info.kind);
  return ConstFloatVector(whole.data() + (wanted.begin - held.begin) * info.unit_size(),
                          wanted.size() * info.unit_size());
}

LayerWeights ModelView::make_layer(int l) const {
  const ParamTable& t = table();
  LayerWeights w;
  const auto pair = [&](ParamRole role, PackedMatrix& forward, PackedMatrix& backward) {
    const int tensor = t.index_of(role, l);
    forward = slice(packed_->forward(tensor), tensor, forward_order(role));
    backward = slice(packed_->backward(tensor), tensor, backward_order(role));
  };
  pair(ParamRole::kQuery, w.query, w.query_t);
  pair(ParamRole::kKeyValue, w.key_value, w.key_value_t);
  pair(ParamRole::kOutput, w.output, w.output_t);
  pair(ParamRole::kGateUp, w.gate_up, w.gate_up_t);
  pair(ParamRole::kDown, w.down, w.down_t);
  w.input_norm = slice_vector(t.index_of(ParamRole::kInputNorm, l));
  w.post_norm = slice_vector(t.index_of(ParamRole::kPostNorm, l));
  w.query_norm = slice_vector(t.index_of(ParamRole::kQueryNorm, l));
  w.key_norm = slice_vector(t.index_of(ParamRole::kKeyNorm, l));
  w.query_bias = slice_vector(t.index_of(ParamRole::kQueryBias, l));
  w.key_value_bias = slice_vector(t.index_of(ParamRole::kKeyValueBias, l));
  return w;
}

}  // namespace taper
