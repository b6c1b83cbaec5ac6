// SPDX-License-Identifier: Apache-2.0
#include "model/HuggingFace.hpp"

#include <algorithm>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "model/RandomWeights.hpp"

namespace taper {
namespace {

// One rectangle of a Hugging Face tensor and where its rows stand among the stored rows of a piece.
struct Part {
  std::string name;
  std::int64_t row_begin, row_end;  // of the file's tensor
  std::int64_t column_begin, column_end;
  int stored_row;   // first row within the piece
  bool transposed;  // stored rows are the file's columns
};

std::string prefix(int layer) {
  return "model.layers." + std::to_string(layer) + ".";
}

// Where piece `unit` of `tensor` comes from.
std::vector<Part> parts_of(const ParamTable& table, const ParamTensor& t, int unit) {
  const ModelConfig& c = table.config();
  const std::int64_t h = c.hidden, d = c.head_dim, u = unit;
  const std::string p = t.layer < 0 ? "" : prefix(t.layer);
  const std::int64_t mlp_end = std::min<std::int64_t>((u + 1) * kMlpBlock, c.intermediate);
  const std::int64_t vocab_end = std::min<std::int64_t>((u + 1) * kVocabBlock, c.vocab);
  const int pad = table.head_pad();
  switch (t.role) {
    case ParamRole::kEmbedding:
      return {{"model.embed_tokens.weight", u * kVocabBlock, vocab_end, 0, h, 0, false}};
    case ParamRole::kHead:
      return {{"lm_head.weight", u * kVocabBlock, vocab_end, 0, h, 0, false}};
    case ParamRole::kScore:
      return {{"score.weight", 0, 1, 0, h, 0, false}};
    case ParamRole::kInputNorm:
      return {{p + "input_layernorm.weight", 0, h, 0, 1, 0, true}};
    case ParamRole::kPostNorm:
      return {{p + "post_attention_layernorm.weight", 0, h, 0, 1, 0, true}};
    case ParamRole::kFinalNorm:
      return {{"model.norm.weight", 0, h, 0, 1, 0, true}};
    case ParamRole::kQueryNorm:
      return {{p + "self_attn.q_norm.weight", 0, d, 0, 1, 0, true}};
    case ParamRole::kKeyNorm:
      return {{p + "self_attn.k_norm.weight", 0, d, 0, 1, 0, true}};
    case ParamRole::kQuery:
      return {{p + "self_attn.q_proj.weight", u * d, (u + 1) * d, 0, h, 0, false}};
    case ParamRole::kQueryBias:
      return {{p + "self_attn.q_proj.bias", u * d, (u + 1) * d, 0, 1, 0, false}};
    case ParamRole::kKeyValue:
      return {{p + "self_attn.k_proj.weight", u * d, (u + 1) * d, 0, h, 0, false},
              {p + "self_attn.v_proj.weight", u * d, (u + 1) * d, 0, h, pad, false}};
    case ParamRole::kKeyValueBias:
      return {{p + "self_attn.k_proj.bias", u * d, (u + 1) * d, 0, 1, 0, false},
              {p + "self_attn.v_proj.bias", u * d, (u + 1) * d, 0, 1, pad, false}};
    case ParamRole::kOutput:
      return {{p + "self_attn.o_proj.weight", 0, h, u * d, (u + 1) * d, 0, true}};
    case ParamRole::kGateUp:
      return {{p + "mlp.gate_proj.weight", u * kMlpBlock, mlp_end, 0, h, 0, false},
              {p + "mlp.up_proj.weight", u * kMlpBlock, mlp_end, 0, h, kMlpBlock, false}};
    case ParamRole::kDown:
      return {{p + "mlp.down_proj.weight", 0, h, u * kMlpBlock, mlp_end, 0, true}};
  }
  return {};
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return "[" + join(shape) + "]";
}

}  // namespace

std::vector<HuggingFaceTensor> hugging_face_tensors(const ParamTable& table) {
  const ModelConfig& c = table.config();
  const std::int64_t h = c.hidden, q = std::int64_t{c.heads} * c.head_dim,
                     kv = std::int64_t{c.kv_heads} * c.head_dim;
  std::vector<HuggingFaceTensor> list{{"model.embed_tokens.weight", {c.vocab, h}}};
  for (int l = 0; l < c.layers; ++l) {
    const std::string p = prefix(l);
    list.push_back({p + "input_layernorm.weight", {h}});
    list.push_back({p + "self_attn.q_proj.weight", {q, h}});
    list.push_back({p + "self_attn.k_proj.weight", {kv, h}});
    list.push_back({p + "self_attn.v_proj.weight", {kv, h}});
    if (c.qkv_bias) {
      list.push_back({p + "self_attn.q_proj.bias", {q}});
      list.push_back({p + "self_attn.k_proj.bias", {kv}});
      list.push_back({p + "self_attn.v_proj.bias", {kv}});
    }
    if (c.qk_norm) {
      list.push_back({p + "self_attn.q_norm.weight", {c.head_dim}});
      list.push_back({p + "self_attn.k_norm.weight", {c.head_dim}});
    }
    list.push_back({p + "self_attn.o_proj.weight", {h, q}});
    list.push_back({p + "post_attention_layernorm.weight", {h}});
    list.push_back({p + "mlp.gate_proj.weight", {c.intermediate, h}});
    list.push_back({p + "mlp.up_proj.weight", {c.intermediate, h}});
    list.push_back({p + "mlp.down_proj.weight", {h, c.intermediate}});
  }
  list.push_back({"model.norm.weight", {h}});
  if (c.has_scalar_head())
    list.push_back({"score.weight", {1, h}});
  else if (!c.tied)
    list.push_back({"lm_head.weight", {c.vocab, h}});
  return list;
}

HuggingFaceReader::HuggingFaceReader(const std::filesystem::path& directory,
                                     const ParamTable& table,
                                     std::optional<std::uint64_t> score_seed)
    : path_(path_text(directory)),
      table_(&table),
      files_(SafetensorsDir::open(directory)),
      score_seed_(score_seed) {
  const bool draws_score = table.config().has_scalar_head() && score_seed_;
  for (const auto& tensor : hugging_face_tensors(table))
    if (!draws_score || tensor.name != "score.weight") check(tensor.name, tensor.shape);
}

void HuggingFaceReader::check(const std::string& name, std::vector<std::int64_t> shape) const {
  TAPER_VALIDATE(files_.contains(name),
                 path_ << " has no tensor '" << name
                       << "' (config.json asks for it); the weights are of another model");
  const TensorView& view = files_.tensor(name);
  TAPER_VALIDATE(view.shape == shape, path_ << ": tensor '" << name << "' has shape "
                                            << shape_text(view.shape) << " (config.json means "
                                            << shape_text(shape)
                                            << "); the weights are of another model");
  const std::string problem = weight_type_problem(view.type);
  TAPER_VALIDATE(problem.empty(), path_ << ": tensor '" << name << "' has " << problem
                                        << "; convert the model first");
}

void HuggingFaceReader::read_piece(int id, std::span<float> out) const {
  const int index = table_->tensor_of_piece(id);
  const ParamTensor& tensor = table_->tensors()[index];
  TAPER_EXPECT(static_cast<std::int64_t>(out.size()) == tensor.unit_size());
  if (tensor.role == ParamRole::kScore && score_seed_) {
    draw_score(*score_seed_, out);
    return;
  }
  std::fill(out.begin(), out.end(), 0.0f);
  std::vector<float> block;
  for (const Part& part : parts_of(*table_, tensor, id - table_->first_piece(index))) {
    const std::int64_t rows = part.row_end - part.row_begin,
                       columns = part.column_end - part.column_begin;
    float* to = out.data() + part.stored_row * std::int64_t{tensor.columns};
    if (!part.transposed) {
      files_.read_f32_block(part.name, part.row_begin, part.row_end, part.column_begin,
                            part.column_end, {to, static_cast<std::size_t>(rows * columns)});
      continue;
    }
    block.resize(static_cast<std::size_t>(rows * columns));
    files_.read_f32_block(part.name, part.row_begin, part.row_end, part.column_begin,
                          part.column_end, block);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c) to[c * rows + r] = block[r * columns + c];
  }
}

namespace {

std::vector<TensorSpec> specs(const ParamTable& table, TensorType type) {
  std::vector<TensorSpec> list;
  for (const auto& tensor : hugging_face_tensors(table))
    list.push_back({tensor.name, type, tensor.shape});
  return list;
}

}  // namespace

HuggingFaceWriter::HuggingFaceWriter(const std::filesystem::path& file, const ParamTable& table,
                                     TensorType type)
    : table_(&table), writer_(file, specs(table, type)) {}

void HuggingFaceWriter::write_piece(int id, std::span<const float> values) {
  const int index = table_->tensor_of_piece(id);
  const ParamTensor& tensor = table_->tensors()[index];
  std::vector<float> block;
  for (const Part& part : parts_of(*table_, tensor, id - table_->first_piece(index))) {
    const std::int64_t rows = part.row_end - part.row_begin,
                       columns = part.column_end - part.column_begin;
    const float* from = values.data() + part.stored_row * std::int64_t{tensor.columns};
    std::span<const float> data(from, static_cast<std::size_t>(rows * columns));
    if (part.transposed) {
      block.resize(static_cast<std::size_t>(rows * columns));
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) block[r * columns + c] = from[c * rows + r];
      data = block;
    }
    writer_.write_block(part.name, part.row_begin, part.row_end, part.column_begin, part.column_end,
                        data);
  }
}

}  // namespace taper
