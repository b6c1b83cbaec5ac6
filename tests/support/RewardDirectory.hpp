// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "base/Error.hpp"
#include "instance/ModelFiles.hpp"
#include "io/AtomicFile.hpp"
#include "model/HuggingFace.hpp"

namespace taper::test {

// Writes the reward model that has the decoder of a language model's directory and a head of the
// given weights (empty: drawn from seed 1) as a Hugging Face directory. One rank only.
inline void write_reward_model(const std::filesystem::path& from, const std::vector<float>& score,
                               const std::filesystem::path& to) {
  const ModelFiles files(from, "the model", {OutputHead::kScalar, 1});
  std::filesystem::create_directories(to);
  const HuggingFaceReader reader = files.open_weights();
  HuggingFaceWriter writer(to / "model.safetensors", files.table, TensorType::kF32);
  std::vector<float> values;
  for (int piece = 0; piece < files.table.pieces(); ++piece) {
    const ParamTensor& tensor = files.table.tensors()[files.table.tensor_of_piece(piece)];
    values.resize(static_cast<std::size_t>(tensor.unit_size()));
    reader.read_piece(piece, values);
    if (tensor.role == ParamRole::kScore && !score.empty()) values = score;
    writer.write_piece(piece, values);
  }
  writer.commit();
  write_file_atomically(to / "config.json", model_config_json(files.config, "float32"));
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    if (std::filesystem::exists(from / name))
      std::filesystem::copy_file(from / name, to / name,
                                 std::filesystem::copy_options::overwrite_existing);
}

}  // namespace taper::test
