// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/WriteExits.hpp"

#include <algorithm>

#include "base/Path.hpp"
#include "instance/ExitFiles.hpp"
#include "io/AtomicFile.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

// Rows of a matrix of the model that is stored by blocks of the vocabulary.
std::vector<float> rows_of(const ModelFiles& files, const HuggingFaceReader& reader, ParamRole role,
                           const std::vector<std::int32_t>& ids) {
  const int index = files.table.index_of(role);
  const ParamTensor& tensor = files.table.tensors()[index];
  std::vector<float> block(static_cast<std::size_t>(tensor.unit_size())), rows;
  int unit = -1;
  for (const std::int32_t id : ids) {
    if (id / kVocabBlock != unit) {
      unit = id / kVocabBlock;
      reader.read_piece(files.table.first_piece(index) + unit, block);
    }
    const auto row = block.begin() + id % kVocabBlock * std::int64_t{tensor.columns};
    rows.insert(rows.end(), row, row + tensor.columns);
  }
  return rows;
}

void write_head(const ModelConfig& config, const std::vector<float>& rows,
                const std::vector<float>& norm_weights, const fs::path& directory) {
  fs::create_directory(directory);
  write_file_atomically(directory / "config.json", model_config_json(config, "float32"));
  const ParamTable table(config);
  HuggingFaceWriter writer(directory / "model.safetensors", table, TensorType::kF32);
  const int embedding = table.index_of(ParamRole::kEmbedding),
            norm = table.index_of(ParamRole::kFinalNorm);
  std::vector<float> values(static_cast<std::size_t>(table.tensors()[embedding].unit_size()));
  for (int unit = 0; unit < table.vocab_blocks(); ++unit) {
    const auto begin = std::min(unit * values.size(), rows.size()),
               end = std::min(begin + values.size(), rows.size());
    std::fill(values.begin(), values.end(), 0.0f);
    std::copy(rows.begin() + begin, rows.begin() + end, values.begin());
    writer.write_piece(table.first_piece(embedding) + unit, values);
  }
  writer.write_piece(table.first_piece(norm), norm_weights);
  writer.commit();
}

}  // namespace

void write_exits(const ModelFiles& files, const std::vector<int>& layers,
                 const std::vector<std::int32_t>& ids, const fs::path& directory) {
  ModelConfig config = files.config;
  config.layers = 0;
  config.tied = true;
  config.vocab = static_cast<int>(ids.size());
  config.eos_ids.clear();  // ids of the policy mean nothing here
  config.bos_id = config.pad_id = {};
  const HuggingFaceReader reader = files.open_weights();
  const std::vector<float> rows =
      rows_of(files, reader, files.config.tied ? ParamRole::kEmbedding : ParamRole::kHead, ids);
  std::vector<float> norm(static_cast<std::size_t>(config.hidden));
  reader.read_piece(files.table.first_piece(files.table.index_of(ParamRole::kFinalNorm)), norm);
  // Streams of early layers would give large logits, sure of wrong ids.
  constexpr float kScale = 0.25f;
  for (float& value : norm) value *= kScale;
  const fs::path target = without_end_slash(directory);
  const fs::path aside = target.string() + ".writing";
  AsideDirectory writing(aside);
  for (const int count : layers)
    write_head(config, rows, norm, ExitFiles::head_directory(aside, count));
  write_file_atomically(ExitFiles::list_file(aside), ExitFiles::list_text(layers, ids));
  writing.rename_to(target);
}

}  // namespace taper
